/* SPDX-License-Identifier: MIT */
/*
 * A flavour as a table of functions with liburcu's layout, because liburcu's data structures take
 * one. Only liburcu 0.15 and newer has the last two; programs compiled for an older one do not read
 * them.
 */
#ifndef PRUDENCE_URCU_COMPAT_FLAVOR_H
#define PRUDENCE_URCU_COMPAT_FLAVOR_H

#include <pthread.h>

#include <prudence/urcu-compat.h>

struct urcu_atfork {
    void (*before_fork)(void *priv);
    void (*after_fork_parent)(void *priv);
    void (*after_fork_child)(void *priv);
    void *priv;
};

struct urcu_gp_poll_state {
    prudence_gp_t grace_period_id;
};

struct rcu_flavor_struct {
    void (*read_lock)(void);
    void (*read_unlock)(void);
    int (*read_ongoing)(void);
    void (*read_quiescent_state)(void);
    void (*update_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
    void (*update_synchronize_rcu)(void);
    void (*update_defer_rcu)(void (*fct)(void *p), void *p);

    void (*thread_offline)(void);
    void (*thread_online)(void);
    void (*register_thread)(void);
    void (*unregister_thread)(void);

    void (*barrier)(void);

    void (*register_rculfhash_atfork)(struct urcu_atfork *atfork);
    void (*unregister_rculfhash_atfork)(struct urcu_atfork *atfork);

    struct urcu_gp_poll_state (*update_start_poll_synchronize_rcu)(void);
    bool (*update_poll_state_synchronize_rcu)(struct urcu_gp_poll_state state);
};

#endif /* PRUDENCE_URCU_COMPAT_FLAVOR_H */
