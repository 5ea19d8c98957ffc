/* SPDX-License-Identifier: MIT */
/* Domains that another library drives (see external.c). */
#ifndef GP_USER_EXTERNAL_H
#define GP_USER_EXTERNAL_H

#include "gp/user/domain.h"

void external_start_in_child(void); /* without any lock held */

#endif /* GP_USER_EXTERNAL_H */
