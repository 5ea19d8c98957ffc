/* SPDX-License-Identifier: MIT */
/* The part of liburcu 0.14's table of a flavor that the adapter uses (test_urcu_polling.c). */
#ifndef TESTS_URCU_FLAVOR_H
#define TESTS_URCU_FLAVOR_H

#include <stdbool.h>

#include <urcu/urcu-poll.h>

struct rcu_flavor_struct {
    int (*read_ongoing)(void);
    void (*update_synchronize_rcu)(void);
    struct urcu_gp_poll_state (*update_start_poll_synchronize_rcu)(void);
    bool (*update_poll_state_synchronize_rcu)(struct urcu_gp_poll_state state);
};

#endif /* TESTS_URCU_FLAVOR_H */
