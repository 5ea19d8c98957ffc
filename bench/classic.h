/* SPDX-License-Identifier: MIT */
/*
 * Deferral as it was before the allocator could see it: a queue of callbacks for each CPU, as in
 * the kernel's tree RCU. The head of a callback lies in the object itself.
 *
 * A reclaimer thread for each CPU, bound to it, takes what is queued, waits for a grace period,
 * and calls the callbacks in throttled batches: 10 at a time, and a turn for the CPU's other
 * threads after 10 such batches, as softirqs do; without limit while more than 10,000 wait, until
 * there are less than 100 again (blimit, qhimark and qlowmark of kernel/rcu/tree.c).
 */
#ifndef BENCH_CLASSIC_H
#define BENCH_CLASSIC_H

#include <prudence/prudence.h>

struct classic_head {
    struct classic_head *next;
    struct prudence_cache *cache; /* where the object goes back to */
};

/* Starts the reclaimers; `callback` is called for each object when it is safe. */
void classic_start(void (*callback)(struct classic_head *head));

/* Queues `object`, which belongs to `cache`. Any thread. */
void classic_call(void *object, struct prudence_cache *cache);

/* Waits until everything queued before has been called. */
void classic_barrier(void);

#endif /* BENCH_CLASSIC_H */
