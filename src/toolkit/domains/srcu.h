/* SPDX-License-Identifier: MIT */
/* Domains whose readers may block (see srcu.c). */
#ifndef TOOLKIT_DOMAINS_SRCU_H
#define TOOLKIT_DOMAINS_SRCU_H

#include "gp/user/domain.h"

/* The second half of an entry, for tests */
void srcu_enter_at(struct prudence_domain *domain, int index);

#endif /* TOOLKIT_DOMAINS_SRCU_H */
