/* SPDX-License-Identifier: MIT */
/* Whether a thread would wait for itself (see may_wait.c). */
#ifndef GP_USER_MAY_WAIT_H
#define GP_USER_MAY_WAIT_H

#include "gp/user/domain.h"

/* Same as gp_may_wait() for an explicit wait for grace periods of `waits_for`. Readers of srcu and
 * external domains may block, so their sections only hold up grace periods of their own domain and
 * of sets that contain the domain. */
bool gp_may_wait_for(const struct prudence_domain *waits_for);

/* The same for a thread that calls gp_leave_to_wait(leaves) before the wait; NULL: it does not. A
 * thread asks before it leaves. A refused wait must not pass a quiescent state, because the caller
 * goes on using what it found online. */
bool gp_may_leave_and_wait(const struct prudence_domain *leaves,
                           const struct prudence_domain *waits_for);

/* The first counts sections and foreign readers alone, the second names of this thread alone. */
bool gp_may_wait_for_sections(const struct prudence_domain *waits_for);
bool gp_may_wait_names_hold_up(const struct prudence_domain *waits_for);

/* Returns whether this thread is inside `only`, or any domain if that is NULL, as far as only a
 * foreign function knows. No lock is held. */
bool may_wait_is_inside_elsewhere(const struct prudence_domain *only);

/* For waits that a caller asks for, once they are allowed: takes the thread offline in the qsbr
 * domain itself or in members, and returns where the thread was online. */
uint64_t gp_leave_to_wait(struct prudence_domain *domain);
void gp_return_from_wait(struct prudence_domain *domain, uint64_t was_online);

#endif /* GP_USER_MAY_WAIT_H */
