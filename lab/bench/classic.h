/* SPDX-License-Identifier: MIT */
/*
 * Deferral hidden from the allocator: a queue of callbacks for each CPU, as in the kernel's tree
 * RCU. The head of a callback is in the object itself.
 *
 * Each CPU has a reclaimer thread, bound to it, which takes the queue, waits for a grace period,
 * and calls the callbacks in throttled batches: 10 at a time, and a turn for the CPU's other
 * threads after 10 such batches, as softirqs do. While more than 10,000 are pending there is no
 * limit, until fewer than 100 remain (blimit, qhimark and qlowmark of kernel/rcu/tree.c).
 */
#ifndef BENCH_CLASSIC_H
#define BENCH_CLASSIC_H

#include <prudence/prudence.h>

struct classic_head {
    struct classic_head *next;
    struct prudence_cache *cache; /* cache that the object belongs to */
};

/* Starts the reclaimers, which call `callback` for each object when it is safe. */
void classic_start(void (*callback)(struct classic_head *head));

/* Queues `object`, which belongs to `cache`. Any thread may call this. */
void classic_call(void *object, struct prudence_cache *cache);

/* Waits until all callbacks queued before have been called. */
void classic_barrier(void);

#endif /* BENCH_CLASSIC_H */
