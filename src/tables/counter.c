/* SPDX-License-Identifier: MIT */
/*
 * Split counters (<prudence/counter.h>): a word for each CPU, each on a cache line of its own.
 *
 * The process chooses at the start how to add to a CPU's word: by restartable sequences, of which
 * only one runs on a CPU at a time, or by atomic additions. Either way no addition is lost. If a
 * sequence is interrupted or the thread has none, the number is added atomically to one more word.
 */
#include <prudence/counter.h>

#include <errno.h>

#include "base/atomic.h"
#include "os/os.h"
#include "process.h"

/* A CPU's number is the first word of a line. */
struct prudence_counter {
    void *lines; /* constant */
    char apart[CACHE_LINES_APART - sizeof(void *)];
    int64_t others; /* numbers that no sequence could add; apart, because all read `lines` */
};

static int64_t *number_of(const struct prudence_counter *counter, unsigned cpu)
{
    return (int64_t *)((char *)counter->lines + cpu * OS_PERCPU_STRIDE);
}

_Static_assert(sizeof(struct prudence_counter) <= OS_PERCPU_STRIDE, "it has the room of one line");

struct prudence_counter *prudence_counter_create(void)
{
    struct prudence_counter *counter;
    size_t bytes;

    process_start();
    bytes = (os_cpu_count() + 1) * OS_PERCPU_STRIDE;
    counter = prudence_aligned_alloc(OS_PERCPU_STRIDE, bytes);
    if (!counter)
        return NULL;
    __builtin_memset(counter, 0, bytes);
    counter->lines = (char *)counter + OS_PERCPU_STRIDE;
    return counter;
}

int prudence_counter_destroy(struct prudence_counter *counter)
{
    if (!counter)
        return EINVAL;
    prudence_free(counter);
    return 0;
}

void prudence_counter_add(struct prudence_counter *counter, int64_t number)
{
    if (unlikely(!os_percpu_rseq))
        add_relaxed(number_of(counter, os_cpu_current()), number);
    else if (unlikely(!os_percpu_add(&counter->lines, number)))
        add_relaxed(&counter->others, number);
}

/* Sums the words as unsigned numbers, because their overflow is defined. */
int64_t prudence_counter_sum(const struct prudence_counter *counter)
{
    uint64_t sum = (uint64_t)load_relaxed(&counter->others);

    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        sum += (uint64_t)load_relaxed(number_of(counter, cpu));
    return (int64_t)sum;
}
