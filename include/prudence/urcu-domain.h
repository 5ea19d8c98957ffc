/* SPDX-License-Identifier: MIT */
/*
 * A domain whose grace periods are liburcu's, for programs that keep liburcu for reading. Objects
 * of caches that name the domain are handed out again when liburcu's readers are through.
 *
 *     #include <urcu.h>                      or <urcu/urcu-qsbr.h>, <urcu/urcu-mb.h>, ...
 *     #include <prudence/urcu-domain.h>
 *     domain = prudence_urcu_domain_create("urcu", &rcu_flavor);   or &urcu_bp_flavor, ...
 *
 * Header only: libprudence does not know liburcu. docs/how-to/liburcu.md says more.
 *
 * liburcu before 0.14 cannot be polled. A thread of the library calls synchronize_rcu when grace
 * periods are asked for (prudence_domain_create_external). liburcu 0.14 and later is polled. Then
 * the threads that allocate and defer under the domain, and the one that makes it, must be
 * registered with liburcu and, in qsbr, online, as callers of call_rcu must. If they are not,
 * define PRUDENCE_URCU_SYNCHRONIZE before the include to have the thread all the same.
 *
 * Threads inside an rcu_read_lock section (online, in qsbr) are recognized: nothing waits there.
 */
#ifndef PRUDENCE_URCU_DOMAIN_H
#define PRUDENCE_URCU_DOMAIN_H

#include <string.h>

#include <prudence/language.h>
#include <prudence/rcu.h>
#include <urcu/flavor.h>

#if defined(__has_include) && !defined(PRUDENCE_URCU_SYNCHRONIZE)
#if __has_include(<urcu/urcu-poll.h>)
#define PRUDENCE_URCU_POLLS 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

static inline const struct rcu_flavor_struct *prudence_urcu_flavor(void *flavor)
{
    return PRUDENCE_CAST(const struct rcu_flavor_struct *, flavor);
}

static inline void prudence_urcu_synchronize(void *flavor)
{
    prudence_urcu_flavor(flavor)->update_synchronize_rcu();
}

static inline bool prudence_urcu_read_lock_held(void *flavor)
{
    return prudence_urcu_flavor(flavor)->read_ongoing() != 0;
}

#ifdef PRUDENCE_URCU_POLLS
static inline uint64_t prudence_urcu_start_poll(void *flavor)
{
    return prudence_urcu_flavor(flavor)->update_start_poll_synchronize_rcu().grace_period_id;
}

static inline bool prudence_urcu_poll_state(void *flavor, uint64_t cookie)
{
    struct urcu_gp_poll_state state;

    state.grace_period_id = (unsigned long)cookie;
    return prudence_urcu_flavor(flavor)->update_poll_state_synchronize_rcu(state);
}
#endif

/*
 * Makes a domain of this flavour. Errors and destruction are as for
 * prudence_domain_create_external.
 */
static inline struct prudence_domain *
prudence_urcu_domain_create(const char *name, const struct rcu_flavor_struct *flavor)
{
    struct prudence_domain_ops ops;
    struct prudence_domain *domain;

    memset(&ops, 0, sizeof ops);
    ops.size = sizeof ops;
    ops.synchronize = prudence_urcu_synchronize;
    ops.read_lock_held = prudence_urcu_read_lock_held;
#ifdef PRUDENCE_URCU_POLLS
    ops.start_poll = prudence_urcu_start_poll;
    ops.poll_state = prudence_urcu_poll_state;
#endif
    domain = prudence_domain_create_external(
        name, &ops, PRUDENCE_CAST(void *, PRUDENCE_CAST(uintptr_t, flavor)));
#ifdef PRUDENCE_URCU_POLLS
    if (domain) /* liburcu makes its thread here, not inside an allocation */
        prudence_urcu_start_poll(PRUDENCE_CAST(void *, PRUDENCE_CAST(uintptr_t, flavor)));
#endif
    return domain;
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_URCU_DOMAIN_H */
