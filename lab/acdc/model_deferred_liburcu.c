/* SPDX-License-Identifier: MIT */
/*
 * Deferred frees by liburcu over malloc, whatever allocator is linked or preloaded: call_rcu, one
 * thread for all callbacks. A callback's head is in the object, which therefore has at least 16
 * bytes.
 */
#define RCU_MEMBARRIER
#define _LGPL_SOURCE /* the read side inlined, as ours is */
#include <urcu.h>

#include <stdlib.h>

#include "model.h"

static bool start(const struct settings *settings, char *why, size_t size)
{
    (void)settings, (void)why, (void)size;
    /* called by main, because the new thread would inherit the CPU of a pinned one */
    get_default_call_rcu_data();
    return true;
}

static bool thread_start(const struct settings *settings, unsigned thread)
{
    (void)settings, (void)thread;
    rcu_register_thread();
    return true;
}

static void thread_stop(void)
{
    rcu_unregister_thread();
}

static void *allocate(size_t size)
{
    return malloc(size < sizeof(struct rcu_head) ? sizeof(struct rcu_head) : size);
}

static void reclaim(struct rcu_head *head)
{
    free(head);
}

static void defer(void *object)
{
    call_rcu(object, reclaim);
}

static void read_lock(void)
{
    rcu_read_lock();
}

static void read_unlock(void)
{
    rcu_read_unlock();
}

static uint64_t held(uint64_t live_bytes)
{
    (void)live_bytes;
    return HELD_UNKNOWN;
}

const struct model model_deferred_liburcu = {
    .description = "malloc, call_rcu of liburcu",
    .start = start,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .allocate = allocate,
    .free = free,
    .defer = defer,
    .read_lock = read_lock,
    .read_unlock = read_unlock,
    .quiesce = rcu_barrier,
    .held = held,
};
