/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "run.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure.h"
#include "statistics.h"

#define WARM_NS      50000000
#define CLOCK_ROUNDS 1001

uint64_t subject_size;
const char *subject_refusal;
static bool stop, warm_stop;

struct thread {
    pthread_t thread;
    const struct subject *subject;
    struct work work;
    pthread_barrier_t *barrier;
    uint64_t ns, cpu_ns;
} __attribute__((aligned(128)));

/* Sums over all threads but the additional writer. */
struct sums {
    uint64_t operations, found, ns, cpu_ns;
    struct histogram *looked_up, *updated;
};

/* Time since the end of the warm-up. */
struct interval {
    uint64_t ns, cycles, cpu_ns;
};

static struct interval interval_now(void)
{
    return (struct interval){now_ns(), cycles(), clock_ns(CLOCK_PROCESS_CPUTIME_ID)};
}

static void forget_warm_up(struct work *work)
{
    work->operations = work->found = 0;
    work->looked_up.operations = work->updated.operations = 0;
    histogram_clear(work->looked_up.cycles);
    histogram_clear(work->updated.cycles);
}

static void call(void (*function)(void))
{
    if (function)
        function();
}

static void *run_thread(void *argument)
{
    struct thread *thread = argument;
    uint64_t begun, cpu_begun;

    pin_to_cpu(thread->work.thread % (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
    call(thread->subject->thread_start);
    thread->work.stop = &warm_stop;
    pthread_barrier_wait(thread->barrier);
    thread->subject->run(&thread->work);
    forget_warm_up(&thread->work);
    thread->work.stop = &stop;
    cpu_begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    begun = now_ns();
    thread->subject->run(&thread->work);
    thread->ns = now_ns() - begun;
    thread->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begun;
    pthread_barrier_wait(thread->barrier);
    call(thread->subject->thread_end);
    return NULL;
}

/* Makes a thread's work, before resident memory is read for the first time. */
static struct work work_make(const struct row *row, unsigned thread)
{
    const unsigned threads = row->threads + row->writers;
    struct work work = {.size = row->size,
                        .updates = thread < row->threads ? row->updates : 100,
                        .hits = row->hits,
                        .walk = row->walk,
                        .thread = thread,
                        .threads = threads,
                        .random = hash_of(thread + 1),
                        .looked_up.cycles = histogram_create(),
                        .updated.cycles = histogram_create()};

    if (row->zipf && work.updates < 100)
        work.stable = draws_make(row->size / 2, hash_of(2 * thread + 1000));
    if (row->zipf && work.updates)
        work.passing = draws_make(row->size / threads, hash_of(2 * thread + 1001));
    return work;
}

static void thread_begin(struct thread *thread, const struct subject *subject,
                         pthread_barrier_t *barrier)
{
    thread->subject = subject;
    thread->barrier = barrier;
    pthread_create(&thread->thread, NULL, run_thread, thread);
}

/* Makes the threads' own memory, their stacks and the code that they run, resident before the
 * table's memory is measured: the C library keeps the stacks and heaps of ended threads for the
 * next ones. */
static void *rehearse_thread(void *barrier)
{
    void *volatile block = malloc(64);

    free(block);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void rehearse(unsigned count)
{
    pthread_t threads[THREADS_MAX + 1];
    pthread_barrier_t barrier;

    pthread_barrier_init(&barrier, NULL, count);
    for (unsigned i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, rehearse_thread, &barrier);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    resident_bytes_peak();
}

static struct sums sums_of(const struct thread *threads, unsigned count)
{
    struct sums sums = {.looked_up = histogram_create(), .updated = histogram_create()};

    for (unsigned i = 0; i < count; i++) {
        sums.operations += threads[i].work.operations;
        sums.found += threads[i].work.found;
        sums.ns += threads[i].ns;
        sums.cpu_ns += threads[i].cpu_ns;
        histogram_add(sums.looked_up, threads[i].work.looked_up.cycles);
        histogram_add(sums.updated, threads[i].work.updated.cycles);
    }
    return sums;
}

/* -------------------------------------------------------------------------- what the clock said */

/* Returns the measured time of an empty operation. */
static double clock_cycles(void)
{
    double rounds[CLOCK_ROUNDS];

    for (unsigned i = 0; i < CLOCK_ROUNDS; i++) {
        const uint64_t begun = cycles();

        rounds[i] = (double)(cycles() - begun);
    }
    return numbers_median(rounds, CLOCK_ROUNDS);
}

static void set_percentile(json_t *json, const char *key, const struct histogram *histogram,
                           double share, double clock, double ns_per_cycle)
{
    const double value = (double)histogram_quantile(histogram, share) - clock;

    /* A percentile needs ten values beyond it. */
    if ((double)histogram_count(histogram) * (1 - share) >= 10)
        json_object_set_new(json, key, json_real(value > 0 ? value * ns_per_cycle : 0));
}

/* Returns times of single operations, less the clock's cost: percentiles, and the mean of all
 * but the slowest hundredth, in which a thread may have been preempted. */
static json_t *times_of(const struct histogram *histogram, double clock, double ns_per_cycle)
{
    json_t *json = json_pack("{s:I}", "count", (json_int_t)histogram_count(histogram));
    const double mean = histogram_mean_below(histogram, 0.99) - clock;

    if (histogram_count(histogram) >= 100)
        json_object_set_new(json, "mean_ns", json_real(mean > 0 ? mean * ns_per_cycle : 0));
    set_percentile(json, "p50_ns", histogram, 0.5, clock, ns_per_cycle);
    set_percentile(json, "p99_ns", histogram, 0.99, clock, ns_per_cycle);
    set_percentile(json, "p99_9_ns", histogram, 0.999, clock, ns_per_cycle);
    return json;
}

/* ---------------------------------------------------------------------------------------- a run */

static json_t *result(const struct row *row, const struct thread *threads, struct interval begun,
                      uint64_t before, uint64_t filled)
{
    const struct interval ended = interval_now();
    const double ns_per_cycle =
        (double)(ended.ns - begun.ns) / (double)(ended.cycles - begun.cycles);
    const struct sums sums = sums_of(threads, row->threads);
    const struct thread *writer = row->writers ? &threads[row->threads] : NULL;
    const double operations = (double)sums.operations, objects = (double)row->size;
    const uint64_t most = resident_bytes_peak(); /* the kernel updates it now and then */
    const double peak = (double)(most > filled ? most : filled), clock = clock_cycles();

    if (!sums.operations)
        return NULL;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "ns",
                     (double)sums.ns / operations, "cpu_ns", (double)sums.cpu_ns / operations,
                     "all_cpu_ns", (double)(ended.cpu_ns - begun.cpu_ns) / operations, "found",
                     (double)sums.found / operations, "bytes_per_object",
                     ((double)filled - (double)before) / objects, "peak_bytes_per_object",
                     (peak - (double)before) / objects, "peak_rss_bytes", peak, "writer_per_second",
                     writer ? (double)writer->work.operations * 1e9 / (double)writer->ns : 0.0,
                     "clock_ns", clock * ns_per_cycle, "lookups",
                     times_of(sums.looked_up, clock, ns_per_cycle), "updates",
                     times_of(sums.updated, clock, ns_per_cycle));
}

json_t *row_run(const void *of)
{
    const struct row *row = of;
    const struct subject *subject = row->strings ? row->entry->strings : row->entry->numbers;
    static struct thread threads[THREADS_MAX + 1];
    /* static, because threads may leave it after this has returned */
    static pthread_barrier_t barrier;
    const unsigned count = row->threads + row->writers;
    struct interval begun;
    uint64_t before, filled;

    subject_size = row->size;
    for (unsigned i = 0; i < count; i++)
        threads[i].work = work_make(row, i);
    call(subject->start);
    call(subject->thread_start);
    rehearse(count);
    before = resident_bytes();
    subject->fill(row->size);
    call(subject->settle);
    filled = resident_bytes();
    call(subject->thread_end);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        thread_begin(&threads[i], subject, &barrier);
    pthread_barrier_wait(&barrier);
    sleep_until_ns(now_ns() + WARM_NS);
    __atomic_store_n(&warm_stop, true, __ATOMIC_RELAXED);
    begun = interval_now();
    sleep_until_ns(now_ns() + (uint64_t)(row->seconds * 1e9));
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_barrier_wait(&barrier);
    if (subject_refusal)
        return json_pack("{s:s}", "not_measured", subject_refusal);
    return result(row, threads, begun, before, filled);
}
