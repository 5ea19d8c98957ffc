/* SPDX-License-Identifier: MIT */
/*
 * Implements a flavour of liburcu's interface with Prudence. There is no include guard, because
 * each flavour's header includes this once, with
 *
 *     PRUDENCE_URCU(name)   the flavour's prefix before a name, for example urcu_memb_##name
 *     PRUDENCE_URCU_DOMAIN  the flavour's domain for <prudence/urcu-compat.h>
 *     PRUDENCE_URCU_QSBR    1 if threads announce quiescent states, else 0
 *
 * Threads need not register, and need not announce a fork; doing both does no harm.
 */
#include <prudence/urcu-compat.h>
#include <urcu/call-rcu.h>
#include <urcu/pointer.h>

/* Headers that liburcu's inline functions include. */
#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<urcu/tls-compat.h>)
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/list.h>
#include <urcu/system.h>
#include <urcu/tls-compat.h>
#endif
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------ read side */

#if PRUDENCE_URCU_QSBR

static inline void PRUDENCE_URCU(read_lock)(void)
{
}

static inline void PRUDENCE_URCU(read_unlock)(void)
{
}

static inline int PRUDENCE_URCU(read_ongoing)(void)
{
    return prudence_urcu_qsbr_is_online();
}

static inline void PRUDENCE_URCU(quiescent_state)(void)
{
    prudence_urcu_qsbr_quiescent();
}

static inline void PRUDENCE_URCU(thread_offline)(void)
{
    prudence_qsbr_offline(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(thread_online)(void)
{
    prudence_qsbr_online(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(register_thread)(void)
{
    prudence_qsbr_online(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(unregister_thread)(void)
{
    prudence_qsbr_offline(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(synchronize_rcu)(void)
{
    prudence_urcu_synchronize(PRUDENCE_URCU_DOMAIN);
}

#else

static inline void PRUDENCE_URCU(read_lock)(void)
{
    prudence_read_lock();
}

static inline void PRUDENCE_URCU(read_unlock)(void)
{
    prudence_read_unlock();
}

static inline int PRUDENCE_URCU(read_ongoing)(void)
{
    return prudence_is_reading();
}

static inline void PRUDENCE_URCU(quiescent_state)(void)
{
}

static inline void PRUDENCE_URCU(thread_offline)(void)
{
}

static inline void PRUDENCE_URCU(thread_online)(void)
{
}

static inline void PRUDENCE_URCU(register_thread)(void)
{
}

static inline void PRUDENCE_URCU(unregister_thread)(void)
{
}

static inline void PRUDENCE_URCU(synchronize_rcu)(void)
{
    prudence_urcu_synchronize(PRUDENCE_URCU_DOMAIN);
}

#endif

static inline void PRUDENCE_URCU(init)(void)
{
}

static inline void PRUDENCE_URCU(exit)(void)
{
}

static inline void PRUDENCE_URCU(before_fork)(void)
{
}

static inline void PRUDENCE_URCU(after_fork_parent)(void)
{
}

static inline void PRUDENCE_URCU(after_fork_child)(void)
{
}

/* -------------------------------------------------------------------------------------- polling */

static inline struct urcu_gp_poll_state PRUDENCE_URCU(start_poll_synchronize_rcu)(void)
{
    struct urcu_gp_poll_state state;

    state.grace_period_id = PRUDENCE_URCU_QSBR ? prudence_domain_start_poll(PRUDENCE_URCU_DOMAIN)
                                               : prudence_gp_start_poll();
    return state;
}

static inline bool PRUDENCE_URCU(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state)
{
    return PRUDENCE_URCU_QSBR
               ? prudence_domain_poll_state(PRUDENCE_URCU_DOMAIN, state.grace_period_id)
               : prudence_gp_poll_state(state.grace_period_id);
}

/* ------------------------------------------------------------------------------------ callbacks */

static inline void PRUDENCE_URCU(call_rcu)(struct rcu_head *head,
                                           void (*func)(struct rcu_head *head))
{
    prudence_urcu_call(PRUDENCE_URCU_DOMAIN, head, func);
}

static inline void PRUDENCE_URCU(barrier)(void)
{
    prudence_urcu_barrier(PRUDENCE_URCU_DOMAIN);
}

static inline struct call_rcu_data *PRUDENCE_URCU(create_call_rcu_data)(unsigned long flags,
                                                                        int cpu_affinity)
{
    return prudence_urcu_create(PRUDENCE_URCU_DOMAIN, flags, cpu_affinity);
}

static inline void PRUDENCE_URCU(call_rcu_data_free)(struct call_rcu_data *crdp)
{
    prudence_urcu_free(crdp);
}

static inline struct call_rcu_data *PRUDENCE_URCU(get_default_call_rcu_data)(void)
{
    return prudence_urcu_default(PRUDENCE_URCU_DOMAIN);
}

static inline struct call_rcu_data *PRUDENCE_URCU(get_cpu_call_rcu_data)(int cpu)
{
    return prudence_urcu_of_cpu(PRUDENCE_URCU_DOMAIN, cpu);
}

static inline struct call_rcu_data *PRUDENCE_URCU(get_thread_call_rcu_data)(void)
{
    return prudence_urcu_of_thread(PRUDENCE_URCU_DOMAIN);
}

static inline struct call_rcu_data *PRUDENCE_URCU(get_call_rcu_data)(void)
{
    return prudence_urcu_current(PRUDENCE_URCU_DOMAIN);
}

static inline pthread_t PRUDENCE_URCU(get_call_rcu_thread)(struct call_rcu_data *crdp)
{
    return PRUDENCE_CAST(pthread_t, prudence_urcu_thread(crdp));
}

static inline void PRUDENCE_URCU(set_thread_call_rcu_data)(struct call_rcu_data *crdp)
{
    prudence_urcu_set_thread(PRUDENCE_URCU_DOMAIN, crdp);
}

static inline int PRUDENCE_URCU(set_cpu_call_rcu_data)(int cpu, struct call_rcu_data *crdp)
{
    return prudence_urcu_set_cpu(PRUDENCE_URCU_DOMAIN, cpu, crdp);
}

static inline int PRUDENCE_URCU(create_all_cpu_call_rcu_data)(unsigned long flags)
{
    return prudence_urcu_create_all(PRUDENCE_URCU_DOMAIN, flags);
}

static inline void PRUDENCE_URCU(free_all_cpu_call_rcu_data)(void)
{
    prudence_urcu_free_all(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(call_rcu_before_fork)(void)
{
    prudence_urcu_before_fork();
}

static inline void PRUDENCE_URCU(call_rcu_after_fork_parent)(void)
{
    prudence_urcu_after_fork_parent();
}

static inline void PRUDENCE_URCU(call_rcu_after_fork_child)(void)
{
    prudence_urcu_after_fork_child(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(register_rculfhash_atfork)(struct urcu_atfork *atfork)
{
    prudence_urcu_atfork_register(atfork);
}

static inline void PRUDENCE_URCU(unregister_rculfhash_atfork)(struct urcu_atfork *atfork)
{
    prudence_urcu_atfork_unregister(atfork);
}

/* ------------------------------------------------------------------------------- deferred calls */

static inline void PRUDENCE_URCU(defer_rcu)(void (*fct)(void *p), void *p)
{
    prudence_urcu_defer(PRUDENCE_URCU_DOMAIN, fct, p);
}

static inline int PRUDENCE_URCU(defer_register_thread)(void)
{
    return 0;
}

/* Like liburcu's: everything that the thread deferred has run when this returns. */
static inline void PRUDENCE_URCU(defer_unregister_thread)(void)
{
    prudence_urcu_defer_barrier(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(defer_barrier)(void)
{
    prudence_urcu_defer_barrier(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(defer_barrier_thread)(void)
{
    prudence_urcu_defer_barrier(PRUDENCE_URCU_DOMAIN);
}

static inline void PRUDENCE_URCU(defer_exit)(void)
{
}

/* Positional, because C++17 has no designated initializers. */
static const struct rcu_flavor_struct PRUDENCE_URCU(flavor) __attribute__((unused)) = {
    PRUDENCE_URCU(read_lock),
    PRUDENCE_URCU(read_unlock),
    PRUDENCE_URCU(read_ongoing),
    PRUDENCE_URCU(quiescent_state),
    PRUDENCE_URCU(call_rcu),
    PRUDENCE_URCU(synchronize_rcu),
    PRUDENCE_URCU(defer_rcu),
    PRUDENCE_URCU(thread_offline),
    PRUDENCE_URCU(thread_online),
    PRUDENCE_URCU(register_thread),
    PRUDENCE_URCU(unregister_thread),
    PRUDENCE_URCU(barrier),
    PRUDENCE_URCU(register_rculfhash_atfork),
    PRUDENCE_URCU(unregister_rculfhash_atfork),
    PRUDENCE_URCU(start_poll_synchronize_rcu),
    PRUDENCE_URCU(poll_state_synchronize_rcu),
};

#ifdef __cplusplus
}
#endif

#undef PRUDENCE_URCU
#undef PRUDENCE_URCU_DOMAIN
#undef PRUDENCE_URCU_QSBR
