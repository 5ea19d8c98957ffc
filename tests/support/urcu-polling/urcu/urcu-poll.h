/* SPDX-License-Identifier: MIT */
/* Replaces the header by which liburcu 0.14 announces polling (test_urcu_polling.c). */
#ifndef TESTS_URCU_POLL_H
#define TESTS_URCU_POLL_H

struct urcu_gp_poll_state {
    unsigned long grace_period_id;
};

#endif /* TESTS_URCU_POLL_H */
