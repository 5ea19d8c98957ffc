/* SPDX-License-Identifier: MIT */
/* Whether a thread would wait for itself (see may_wait.c). */
#ifndef GP_USER_MAY_WAIT_H
#define GP_USER_MAY_WAIT_H

#include "gp/user/domain.h"

/* Returns whether this thread is inside `only`, or any domain if that is NULL, as far as only a
 * foreign function can tell. No lock is held. */
bool may_wait_is_inside_elsewhere(const struct prudence_domain *only);

/* For waits that a caller asks for: takes the thread offline in the qsbr domain itself or in
 * members, and returns where the thread was online. */
uint64_t gp_leave_to_wait(struct prudence_domain *domain);
void gp_return_from_wait(struct prudence_domain *domain, uint64_t was_online);

#endif /* GP_USER_MAY_WAIT_H */
