// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Allocates on one CPU and releases on the next, which gets the object through a ring. */
#include <linux/cache.h>
#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "bench.h"

/* Ring from each CPU to the next, with one writer and one reader. */
#define HAND 64

struct hand {
    void *slots[HAND];
    u64 put ____cacheline_aligned;
    u64 taken ____cacheline_aligned;
};

static struct hand *hands;

static int do_remote(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    unsigned int to = (worker->cpu + 1) % worker_count, from = worker->cpu;
    unsigned int made = 0, released = 0;

    while (made < pairs || released < pairs) {
        if (made < pairs && hands[to].put - READ_ONCE(hands[to].taken) < HAND) {
            void *object = subject->alloc(worker->size);

            if (!object)
                worker->failed++;
            hands[to].slots[hands[to].put % HAND] = object;
            /* Publishes the slot; pairs with the acquire below. */
            smp_store_release(&hands[to].put, hands[to].put + 1);
            made++;
        }
        /* Pairs with the release above. */
        if (released < pairs && hands[from].taken != smp_load_acquire(&hands[from].put)) {
            void *object = hands[from].slots[hands[from].taken % HAND];

            /* Lets the writer reuse the slot, which has been read. */
            smp_store_release(&hands[from].taken, hands[from].taken + 1);
            if (object)
                subject->release(object);
            released++;
        } else {
            cond_resched();
        }
        if (released % 64 == 0)
            cond_resched();
    }
    worker->done = released;
    return 0;
}

static int remote_of(const struct subject *subject, size_t size, unsigned int round)
{
    u64 before = used_kb();
    int error;

    memset(hands, 0, array_size(nr_cpu_ids, sizeof(*hands)));
    error = workers_start(do_remote, subject, size, 1);
    if (error)
        return error;
    workers_wait();
    pr_info(
        "BENCH "
        "{\"run\":\"remote\",\"subject\":\"%s\",\"size\":%zu,\"cpus\":%u,\"nodes\":%u,"
        "\"round\":%u,\"ns_per_pair\":%llu,\"failed\":%llu,\"grown_kb\":%lld}\n",
        subject->name, size, worker_count, num_online_nodes(), round,
        div64_u64(worker_sum(offsetof(struct worker, ns)), (u64)pairs * worker_count),
        worker_sum(offsetof(struct worker, failed)), (s64)(used_kb() - before));
    workers_end();
    settle();
    return 0;
}

int run_remote(void)
{
    size_t size = only_size ? only_size : 256;
    unsigned int round, i;
    bool goes = true;

    hands = kvcalloc(nr_cpu_ids, sizeof(*hands), GFP_KERNEL);
    if (!hands)
        return -ENOMEM;
    for (round = 0; round < rounds && goes; round++)
        for (i = 0; i < SUBJECTS && goes; i++) {
            /* interleaved */
            const struct subject *subject = &subjects[(i + round) % SUBJECTS];

            goes = !remote_of(subject, max(size, subject->least), round);
        }
    kvfree(hands);
    return 0;
}
