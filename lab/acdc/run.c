/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "run.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "measure.h"
#include "mutator.h"

#define PROGRESS_NS 200000000

static void *map_zeroed(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* Reads frees first, so that allocations in the meantime cannot make the difference negative. */
void run_live(const struct run *run, uint64_t *objects, uint64_t *bytes)
{
    uint64_t freed_objects = 0, freed_bytes = 0;

    *objects = *bytes = 0;
    for (unsigned i = 0; i < run->settings->threads; i++) {
        freed_objects += counter_read(&run->mutator[i].counters.freed_objects);
        freed_bytes += counter_read(&run->mutator[i].counters.freed_bytes);
    }
    for (unsigned i = 0; i < run->settings->threads; i++) {
        *objects += counter_read(&run->mutator[i].counters.allocated_objects);
        *bytes += counter_read(&run->mutator[i].counters.allocated_bytes);
    }
    *objects -= *objects > freed_objects ? freed_objects : *objects;
    *bytes -= *bytes > freed_bytes ? freed_bytes : *bytes;
}

/* ------------------------------------------------------------------------------------- progress */

static bool all_done(const struct run *run)
{
    return __atomic_load_n(&run->done, __ATOMIC_ACQUIRE) == run->settings->threads;
}

static void show_progress(const struct run *run)
{
    uint64_t time = pace_slowest(&run->pace), objects, bytes;

    run_live(run, &objects, &bytes);
    if (time > run->settings->duration)
        time = run->settings->duration;
    fprintf(stderr, "\r\033[Kacdc: time %llu of %llu, %.1f MB live, %.1f MB resident",
            (unsigned long long)time, (unsigned long long)run->settings->duration,
            (double)bytes / 1e6, (double)resident_bytes() / 1e6);
}

static void watch(const struct run *run)
{
    while (!all_done(run)) {
        show_progress(run);
        sleep_until_ns(now_ns() + PROGRESS_NS);
    }
    fprintf(stderr, "\r\033[K");
}

/* -------------------------------------------------------------------------------------- results */

static void add_mutator(struct result *result, const struct mutator *mutator)
{
    const struct settings *settings = mutator->settings;

    result->out_of_memory |= mutator->out_of_memory;
    result->rounds += mutator->rounds;
    result->allocated_objects += mutator->counters.allocated_objects;
    result->allocated_bytes += mutator->counters.allocated_bytes;
    result->shared_objects += mutator->shared_objects;
    result->received_objects += mutator->received_objects;
    result->deferred_objects += mutator->deferred_objects;
    result->reads += mutator->reads;
    result->writes += mutator->writes;
    result->books_bytes += mutator->arena.mapped;
    for (unsigned i = 0; i <= MOST_SIZE; i++) {
        result->class_objects[i] += mutator->class_objects[i];
        result->class_bytes[i] += mutator->class_bytes[i];
    }
    for (uint64_t i = 0; i <= settings->max_liveness - settings->min_liveness; i++)
        result->liveness_objects[i] += mutator->liveness_objects[i];
    for (unsigned i = 0; i < OPERATIONS; i++)
        times_add(&result->times[i], &mutator->times[i]);
}

static void add_all(struct run *run, struct result *result)
{
    uint64_t first = UINT64_MAX, last = 0;

    for (unsigned i = 0; i < run->settings->threads; i++) {
        const struct mutator *mutator = &run->mutator[i];

        add_mutator(result, mutator);
        first = mutator->began_ns < first ? mutator->began_ns : first;
        last = mutator->ended_ns > last ? mutator->ended_ns : last;
    }
    result->seconds = (double)(last - first) / 1e9;
    run_live(run, &result->live_objects, &result->live_bytes);
}

/* Objects freed after the run do not count as work. */
static void count_freed(const struct run *run, struct result *result)
{
    for (unsigned i = 0; i < run->settings->threads; i++) {
        result->freed_objects += run->mutator[i].counters.freed_objects;
        result->freed_bytes += run->mutator[i].counters.freed_bytes;
    }
}

/* ------------------------------------------------------------------------------- from the start */

static bool create(struct run *run, const struct settings *settings, const struct model *model,
                   char *why, size_t size)
{
    unsigned threads = settings->threads;
    struct clock_of_thread *clock = map_zeroed(threads * sizeof *clock);
    bool made;

    run->settings = settings;
    run->model = model;
    run->mutator = map_zeroed(threads * sizeof *run->mutator);
    made = clock && run->mutator && trace_start(&run->trace, settings->samples, settings->duration);
    for (unsigned i = 0; i < threads && made; i++)
        made = mutator_create(&run->mutator[i], run, i);
    if (!made) {
        snprintf(why, size, "no memory for %u threads", threads);
        return false;
    }
    pace_start(&run->pace, clock, threads, settings->max_drift);
    pthread_barrier_init(&run->ready, NULL, threads + 1);
    pthread_barrier_init(&run->started, NULL, threads + 1);
    pthread_barrier_init(&run->finished, NULL, threads + 1);
    pthread_barrier_init(&run->drained, NULL, threads);
    return !model->start || model->start(settings, why, size);
}

static void pin(pthread_attr_t *attributes, unsigned number)
{
    cpu_set_t all, one;
    int cpu = -1;

    if (sched_getaffinity(0, sizeof all, &all))
        return;
    for (unsigned left = number % (unsigned)CPU_COUNT(&all) + 1; left; left--) {
        do {
            cpu++;
        } while (!CPU_ISSET(cpu, &all));
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_attr_setaffinity_np(attributes, sizeof one, &one);
}

static bool start_threads(struct run *run, pthread_t *thread, char *why, size_t size)
{
    for (unsigned i = 0; i < run->settings->threads; i++) {
        pthread_attr_t attributes;
        int error;

        pthread_attr_init(&attributes);
        if (run->settings->pinned)
            pin(&attributes, i);
        error = pthread_create(&thread[i], &attributes, mutator_main, &run->mutator[i]);
        pthread_attr_destroy(&attributes);
        if (error) {
            snprintf(why, size, "thread %u of %u cannot start: %s", i + 1, run->settings->threads,
                     strerror(error));
            return false;
        }
    }
    return true;
}

static void measure(struct run *run, struct result *result, bool progress)
{
    uint64_t ticks, cpu;

    pthread_barrier_wait(&run->ready);
    result->base_resident_bytes = resident_bytes();
    cpu = process_cpu_ns();
    run->began_ns = now_ns();
    ticks = cycles();
    pthread_barrier_wait(&run->started);
    if (progress)
        watch(run);
    pthread_barrier_wait(&run->finished);
    result->ticks_per_ns = (double)(cycles() - ticks) / (double)(now_ns() - run->began_ns);
    result->cpu_seconds = (double)(process_cpu_ns() - cpu) / 1e9;
    result->end_resident_bytes = resident_bytes();
    result->peak_resident_bytes = resident_bytes_peak();
    add_all(run, result);
    pthread_barrier_wait(&run->finished);
}

bool run_all(const struct settings *settings, const struct model *model, bool progress,
             struct run *run, struct result *result, char *why, size_t size)
{
    uint64_t livenesses = settings->max_liveness - settings->min_liveness + 1;
    pthread_t *thread = map_zeroed(settings->threads * sizeof *thread);

    memset(run, 0, sizeof *run);
    memset(result, 0, sizeof *result);
    times_calibrate();
    if (!create(run, settings, model, why, size))
        return false;
    result->liveness_objects = map_zeroed(livenesses * sizeof *result->liveness_objects);
    if (!thread || !result->liveness_objects) {
        snprintf(why, size, "no memory for %u threads", settings->threads);
        return false;
    }
    if (!start_threads(run, thread, why, size))
        return false;
    measure(run, result, progress);
    for (unsigned i = 0; i < settings->threads; i++)
        pthread_join(thread[i], NULL);
    if (run->model->quiesce && !result->out_of_memory)
        run->model->quiesce();
    count_freed(run, result);
    result->drained_resident_bytes = resident_bytes();
    munmap(thread, settings->threads * sizeof *thread);
    return true;
}
