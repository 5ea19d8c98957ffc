/* SPDX-License-Identifier: MIT */
/* Domains whose readers may block (see srcu.c). */
#ifndef GP_USER_SRCU_H
#define GP_USER_SRCU_H

#include "gp/user/domain.h"

/* The second half of an entry, for tests */
void srcu_enter_at(struct prudence_domain *domain, int index);

#endif /* GP_USER_SRCU_H */
