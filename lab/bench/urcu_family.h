/* SPDX-License-Identifier: MIT */
/*
 * liburcu's call_rcu over malloc, as a template: a file that includes this has chosen the flavor
 * (RCU_MEMBARRIER or RCU_MB, liburcu's own switches) and names its families.
 */
#ifndef BENCH_URCU_FAMILY_H
#define BENCH_URCU_FAMILY_H

#define _LGPL_SOURCE /* the read side inlined, as ours is */
#include <urcu.h>

#include <stdlib.h>

#include "sized_pool.h"

static void pool_destroy(union pool pool)
{
    (void)pool;
    rcu_barrier();
}

static inline void *allocate(union pool pool)
{
    return malloc(pool.size);
}

static void free_object(struct rcu_head *head)
{
    reclaimed_one();
    free(head);
}

static void free_timed_object(struct rcu_head *head)
{
    timed_object_freed(head);
    free_object(head);
}

static inline void retire(union pool pool, void *object)
{
    (void)pool;
    call_rcu(object, free_object);
}

static inline void retire_timed(union pool pool, void *object)
{
    (void)pool;
    call_rcu(object, free_timed_object);
}

static inline void read_lock(void)
{
    rcu_read_lock();
}

static inline void read_unlock(void)
{
    rcu_read_unlock();
}

static void thread_start(void)
{
    rcu_register_thread();
}

static void thread_stop(void)
{
    rcu_unregister_thread();
}

static void quiesce(void)
{
    rcu_barrier();
}

/* Lets main make the thread that calls the callbacks, because it would inherit a worker's CPU. */
static void start(struct run *run)
{
    (void)run;
    get_default_call_rcu_data();
}

static inline void discard(union pool pool, void *object)
{
    (void)pool;
    free(object);
}

static const struct operations urcu_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire_timed,
    .read_lock = read_lock,
    .read_unlock = read_unlock,
    .times_callbacks = true,
};

FAMILY_LOOPS(urcu)

#define URCU_FAMILY(name, flavor, start_function)                                                  \
    const struct family name##_family = {                                                          \
        .library = flavor,                                                                         \
        .version = LIBURCU_VERSION,                                                                \
        .deferring = true,                                                                         \
        .start = start_function,                                                                   \
        .thread_start = thread_start,                                                              \
        .thread_stop = thread_stop,                                                                \
        .quiesce = quiesce,                                                                        \
        .latent = reclaimed_latent,                                                                \
        FAMILY_MEMBERS(urcu),                                                                      \
    };

#endif /* BENCH_URCU_FAMILY_H */
