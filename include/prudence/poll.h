/* SPDX-License-Identifier: MIT */
/*
 * The rest of the polled interface, with the kernel's meanings: expedited forms, full states, and
 * all of these for domains. The first half is in <prudence/rcu.h>.
 *
 * The kernel counts normal and expedited grace periods apart, so a cookie of one word may miss that
 * the other sort has served it; a full state misses nothing. Here a domain has one sequence,
 * whoever the driver is. No cookie misses a grace period, and a full state is a cookie. Both are
 * offered so that programs written for either keep their words.
 *
 * Expedited means that the caller spends CPU time, and a barrier on the others' CPUs, to have the
 * end sooner.
 */
#ifndef PRUDENCE_POLL_H
#define PRUDENCE_POLL_H

#include <prudence/rcu.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A full state, which is a cookie here. */
typedef struct {
    prudence_gp_t private_cookie;
} prudence_gp_full_t;

/* Returns a cookie that is over already, for initial values. */
PRUDENCE_API prudence_gp_t prudence_domain_get_completed(struct prudence_domain *domain);

/*
 * Works like prudence_domain_start_poll, and does everything that it can at once to end the grace
 * period.
 */
PRUDENCE_API prudence_gp_t prudence_domain_start_poll_expedited(struct prudence_domain *domain);

/*
 * Wait only if `cookie` is not over. Errors, and behaviour in sections, are as for
 * prudence_domain_synchronize. Expedited forms spin for up to 100 microseconds before they sleep.
 */
PRUDENCE_API int prudence_domain_cond_synchronize(struct prudence_domain *domain,
                                                  prudence_gp_t cookie);
PRUDENCE_API int prudence_domain_cond_synchronize_expedited(struct prudence_domain *domain,
                                                            prudence_gp_t cookie);
PRUDENCE_API int prudence_domain_synchronize_expedited(struct prudence_domain *domain);

/*
 * Do the same for the default domain. Where prudence_synchronize aborts, cond_synchronize_expedited
 * does.
 */
PRUDENCE_API prudence_gp_t prudence_gp_get_completed(void);
PRUDENCE_API prudence_gp_t prudence_gp_start_poll_expedited(void);
PRUDENCE_API void prudence_gp_cond_synchronize_expedited(prudence_gp_t cookie);

/* ---------------------------------------------------------------------------------- full states */

/*
 * Do for a full state what the functions without _full do. same_state says whether two are the
 * same.
 */
PRUDENCE_INLINE void prudence_gp_get_completed_full(prudence_gp_full_t *state)
{
    state->private_cookie = prudence_gp_get_completed();
}

PRUDENCE_INLINE void prudence_gp_get_state_full(prudence_gp_full_t *state)
{
    state->private_cookie = prudence_gp_get_state();
}

PRUDENCE_INLINE void prudence_gp_start_poll_full(prudence_gp_full_t *state)
{
    state->private_cookie = prudence_gp_start_poll();
}

PRUDENCE_INLINE void prudence_gp_start_poll_expedited_full(prudence_gp_full_t *state)
{
    state->private_cookie = prudence_gp_start_poll_expedited();
}

PRUDENCE_INLINE bool prudence_gp_poll_state_full(const prudence_gp_full_t *state)
{
    return prudence_gp_poll_state(state->private_cookie);
}

PRUDENCE_INLINE void prudence_gp_cond_synchronize_full(const prudence_gp_full_t *state)
{
    prudence_gp_cond_synchronize(state->private_cookie);
}

PRUDENCE_INLINE void prudence_gp_cond_synchronize_expedited_full(const prudence_gp_full_t *state)
{
    prudence_gp_cond_synchronize_expedited(state->private_cookie);
}

PRUDENCE_INLINE bool prudence_gp_same_state_full(const prudence_gp_full_t *a,
                                                 const prudence_gp_full_t *b)
{
    return prudence_gp_same_state(a->private_cookie, b->private_cookie);
}

PRUDENCE_INLINE void prudence_domain_get_completed_full(struct prudence_domain *domain,
                                                        prudence_gp_full_t *state)
{
    state->private_cookie = prudence_domain_get_completed(domain);
}

PRUDENCE_INLINE void prudence_domain_get_state_full(struct prudence_domain *domain,
                                                    prudence_gp_full_t *state)
{
    state->private_cookie = prudence_domain_get_state(domain);
}

PRUDENCE_INLINE void prudence_domain_start_poll_full(struct prudence_domain *domain,
                                                     prudence_gp_full_t *state)
{
    state->private_cookie = prudence_domain_start_poll(domain);
}

PRUDENCE_INLINE void prudence_domain_start_poll_expedited_full(struct prudence_domain *domain,
                                                               prudence_gp_full_t *state)
{
    state->private_cookie = prudence_domain_start_poll_expedited(domain);
}

PRUDENCE_INLINE bool prudence_domain_poll_state_full(struct prudence_domain *domain,
                                                     const prudence_gp_full_t *state)
{
    return prudence_domain_poll_state(domain, state->private_cookie);
}

PRUDENCE_INLINE int prudence_domain_cond_synchronize_full(struct prudence_domain *domain,
                                                          const prudence_gp_full_t *state)
{
    return prudence_domain_cond_synchronize(domain, state->private_cookie);
}

PRUDENCE_INLINE int prudence_domain_cond_synchronize_expedited_full(struct prudence_domain *domain,
                                                                    const prudence_gp_full_t *state)
{
    return prudence_domain_cond_synchronize_expedited(domain, state->private_cookie);
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_POLL_H */
