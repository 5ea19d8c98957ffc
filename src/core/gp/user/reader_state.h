/* SPDX-License-Identifier: MIT */
/* The state of the thread of the blocking reader (see reader_state.c). */
#ifndef GP_USER_READER_STATE_H
#define GP_USER_READER_STATE_H

#include "gp/user/domain.h"

/* Returns whether a blocking reader wants a CPU and has had none for a while. Makes some system
 * calls at times. */
bool gp_reader_lacks_cpu(struct prudence_domain *domain);

#endif /* GP_USER_READER_STATE_H */
