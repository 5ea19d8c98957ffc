// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Allocates and defers at once on all CPUs, like the paper's Figure 6. */
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "bench.h"

static int do_pairs(struct worker *worker)
{
    const struct subject *subject = worker->subject;
    unsigned int i;

    for (i = 0; i < pairs; i++) {
        char *object = subject->alloc(worker->size);

        if (!object) {
            worker->failed++;
            cond_resched();
            continue;
        }
        WRITE_ONCE(*object, (char)i);
        subject->release(object);
        if (i % 64 == 0)
            cond_resched();
    }
    worker->done = pairs;
    return 0;
}

static void pairs_of(const struct subject *subject, size_t size, unsigned int round)
{
    u64 before = used_kb(), after, busy;

    if (workers_start(do_pairs, subject, max(size, subject->least), 1))
        return;
    busy = busy_ns();
    workers_wait();
    after = used_kb();
    workers_end();
    settle();
    busy = busy_ns() - busy;
    pr_info(
        "BENCH "
        "{\"run\":\"pairs\",\"subject\":\"%s\",\"size\":%zu,\"object\":%zu,\"cpus\":%u,\"round\":%"
        "u,\"pairs\":%u,\"ns_per_pair\":%llu,\"busy_ns_per_pair\":%llu,\"failed\":%llu,\"grown_kb\":%lld}\n",
        subject->name, size, max(size, subject->least), worker_count, round, pairs,
        div64_u64(worker_sum(offsetof(struct worker, ns)), (u64)pairs * worker_count),
        div64_u64(busy, (u64)pairs * worker_count), worker_sum(offsetof(struct worker, failed)),
        (s64)(after - before));
}

void run_pairs(void)
{
    static const size_t sizes[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};

    subjects_in_turns(sizes, ARRAY_SIZE(sizes), pairs_of);
}
