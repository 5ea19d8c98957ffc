/* SPDX-License-Identifier: MIT */
/*
 * The loads: reading, context switches, waiting, callbacks, polling, updates, a storm of callbacks.
 *
 * Places 0 .. workers-1 are measured, and the ones after them read without end. Figures are the
 * workers' wall time and CPU time per operation, and the CPU time of all, readers and helpers too.
 */
#define _GNU_SOURCE
#include "loads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "histogram.h"
#include "measure.h"

#define OBJECT_SIZE 64

struct object {
    struct variant_head head;
    uint64_t called_at;
    char rest[OBJECT_SIZE - sizeof(struct variant_head) - 8];
};

static struct object *shared;
static int over; /* atomic */

struct worker {
    pthread_t thread;
    const struct row *row;
    unsigned place;
    uint64_t (*body)(const struct row *row, unsigned place); /* returns the number of operations */
    uint64_t done, ns, cpu_ns;
};

bool load_goes_on(void)
{
    return !__atomic_load_n(&over, __ATOMIC_RELAXED);
}

/* Pins each place to a CPU, as far as there are enough. */
static void pin(unsigned place)
{
    pin_to_cpu(place % (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    uint64_t began, cpu_began;

    pin(worker->place);
    variant_busy(worker->place);
    began = now_ns();
    cpu_began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    worker->done = worker->body(worker->row, worker->place);
    worker->ns = now_ns() - began;
    worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began;
    variant_leave(worker->place);
    return NULL;
}

static uint64_t read_sections(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done += 256) {
        for (unsigned i = 0; i < 256; i++) {
            variant_read_lock(place);
            (void)__atomic_load_n(&shared, __ATOMIC_RELAXED);
            variant_read_unlock(place);
        }
        variant_switch(place);
    }
    return done;
}

/* Body of readers that run next to the workers: a switch after each section. */
static uint64_t keeps_reading(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done++) {
        variant_read_lock(place);
        (void)__atomic_load_n(&shared, __ATOMIC_RELAXED);
        variant_read_unlock(place);
        variant_switch(place);
    }
    return done;
}

/* For the loads that take latencies one by one; NULL for the others. */
static struct histogram *latencies;

/* Sleeps for the length of the run, and longer until there are enough samples. */
static void sleep_for(const struct row *row)
{
    uint64_t end = now_ns() + (uint64_t)(row->seconds * 1e9);

    sleep_until_ns(end);
    end += SAMPLES_SECONDS * UINT64_C(1000000000);
    while (latencies && histogram_count(latencies) < row->samples && now_ns() < end)
        variant_sleep_ns(1000000);
}

static double per(uint64_t ns, uint64_t done)
{
    return done ? (double)ns / (double)done : 0.0;
}

json_t *run_crew(const struct row *row, uint64_t (*body)(const struct row *row, unsigned place),
                 uint64_t (*reader)(const struct row *row, unsigned place))
{
    struct worker workers[PLACES_MAX];
    unsigned count = row->workers + row->readers;
    uint64_t ns = 0, cpu_ns = 0, done = 0, cpu;

    variant_start(row->variant, count);
    cpu = process_cpu_ns();
    for (unsigned i = count; i-- > 0;) { /* readers first */
        workers[i] = (struct worker){.row = row, .place = i};
        workers[i].body = i < row->workers ? body : reader;
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]))
            abort();
    }
    sleep_for(row);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        if (i >= row->workers)
            continue;
        ns += workers[i].ns;
        cpu_ns += workers[i].cpu_ns;
        done += workers[i].done;
    }
    cpu = process_cpu_ns() - cpu;
    variant_stop();
    return json_pack("{s:f, s:f, s:f, s:I, s:I}", "ns", per(ns, done), "worker_cpu_ns",
                     per(cpu_ns, done), "cpu_ns", per(cpu, done), "operations", (json_int_t)done,
                     "peak_rss_bytes", (json_int_t)resident_bytes_peak());
}

/* ------------------------------------------------------------------------------------- reading */

static json_t *load_read(const struct row *row)
{
    return run_crew(row, read_sections, keeps_reading);
}

static uint64_t switches(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done += 256) {
        for (unsigned i = 0; i < 256; i++)
            variant_switch(place);
    }
    return done;
}

static json_t *load_switch(const struct row *row)
{
    return run_crew(row, switches, keeps_reading);
}

static bool has_switch(const struct variant *variant)
{
    return variant->context_switch || variant == &variant_none;
}

/* Measures, beyond a switch, the cost of a reader that is preempted inside its section. */
static uint64_t preemptions(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    for (; load_goes_on(); done++) {
        struct variant_task task;

        variant_read_lock(place);
        row->variant->preempt(place, &task);
        variant_switch(place);
        row->variant->resume(place, &task);
        variant_read_unlock(place);
        variant_switch(place);
    }
    return done;
}

static json_t *load_preempt(const struct row *row)
{
    return run_crew(row, preemptions, keeps_reading);
}

static bool can_be_preempted(const struct variant *variant)
{
    return variant->preempt != NULL;
}

/* Does nothing, at idle places; an operation is a millisecond. */
static uint64_t rests(const struct row *row, unsigned place)
{
    variant_idle(place);
    variant_sleep_ns((uint64_t)(row->seconds * 1e9));
    variant_busy(place);
    return (uint64_t)(row->seconds * 1e3);
}

static json_t *load_idle(const struct row *row)
{
    struct rusage usage;
    json_t *result = run_crew(row, rests, rests);

    getrusage(RUSAGE_SELF, &usage);
    json_object_set_new(result, "sleeps_per_second",
                        json_real((double)usage.ru_nvcsw / row->seconds));
    return result;
}

/* ----------------------------------------------------------------------------------- latencies */

static json_t *with_latencies(json_t *result)
{
    json_object_set_new(result, "latency_ns", histogram_to_json(latencies));
    return result;
}

static uint64_t synchronizes(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done++) {
        uint64_t began = now_ns();

        variant_synchronize(place);
        histogram_record(latencies, now_ns() - began);
    }
    return done;
}

static json_t *load_synchronize(const struct row *row)
{
    latencies = histogram_create();
    return with_latencies(run_crew(row, synchronizes, keeps_reading));
}

static void note_latency(struct variant_head *head)
{
    struct object *object = (void *)head;

    histogram_record(latencies, now_ns() - object->called_at);
    __atomic_store_n(&object->called_at, 0, __ATOMIC_RELEASE);
}

/* Queues one callback after another. */
static uint64_t calls(const struct row *row, unsigned place)
{
    struct object *object = calloc(1, sizeof *object);
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done++) {
        object->called_at = now_ns();
        variant_call(place, &object->head, note_latency);
        while (__atomic_load_n(&object->called_at, __ATOMIC_ACQUIRE))
            variant_rest(place);
    }
    free(object);
    return done;
}

static json_t *load_call(const struct row *row)
{
    latencies = histogram_create();
    return with_latencies(run_crew(row, calls, keeps_reading));
}

static uint64_t polls(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    for (; load_goes_on(); done++) {
        uint64_t began = now_ns(), cookie = row->variant->start_poll();

        while (!row->variant->poll(cookie))
            variant_rest(place);
        histogram_record(latencies, now_ns() - began);
    }
    return done;
}

static json_t *load_poll(const struct row *row)
{
    latencies = histogram_create();
    return with_latencies(run_crew(row, polls, keeps_reading));
}

static bool can_poll(const struct variant *variant)
{
    return variant->start_poll != NULL;
}

/* ------------------------------------------------------------------------------------- updates */

#define BATCH_TIMED 64 /* with smaller ones the clock would slow the loop */

static uint64_t waited_ns; /* time of all workers in grace periods; atomic */

/* Returns how long it took, if the row asks for that. */
static uint64_t synchronize_for(const struct row *row, unsigned place)
{
    uint64_t began = row->batch >= BATCH_TIMED ? now_ns() : 0;

    variant_synchronize(place);
    return began ? now_ns() - began : 0;
}

/* Does the same as liburcu's gc test: replaced objects go to a batch; a full batch waits once,
 * and is freed. */
static uint64_t updates(const struct row *row, unsigned place)
{
    struct object **batch = malloc(row->batch * sizeof *batch);
    uint64_t done = 0, waited = 0;
    unsigned full = 0;

    while (load_goes_on() || full) {
        struct object *fresh = malloc(sizeof *fresh);

        memset(fresh, 1, sizeof *fresh);
        batch[full] = __atomic_exchange_n(&shared, fresh, __ATOMIC_ACQ_REL);
        done++;
        if (++full == row->batch || !load_goes_on()) {
            waited += synchronize_for(row, place);
            while (full > 0)
                free(batch[--full]);
        }
    }
    free(batch);
    __atomic_fetch_add(&waited_ns, waited, __ATOMIC_RELAXED);
    return done;
}

/* wait_ns: the part of the figure that a worker spent waiting. The rest is the loop: exchanges,
 * malloc and free, whose speed depends on the workers that run at the same time. */
static json_t *load_update(const struct row *row)
{
    json_t *result = run_crew(row, updates, keeps_reading);
    uint64_t done = (uint64_t)json_integer_value(json_object_get(result, "operations"));

    if (row->batch >= BATCH_TIMED)
        json_object_set_new(result, "wait_ns", json_real(per(waited_ns, done)));
    return result;
}

/* Does the same by Prudence's deferred frees, which need no batch. */
static uint64_t deferred_updates(const struct row *row, unsigned place)
{
    struct prudence_cache *cache = prudence_cache_create("updates", sizeof(struct object), NULL);
    struct object *mine = prudence_cache_alloc(cache);
    uint64_t done = 0;

    (void)row, (void)place;
    for (; load_goes_on(); done++) {
        struct object *fresh = prudence_cache_alloc(cache);

        memset(fresh, 1, sizeof *fresh);
        prudence_cache_free_deferred(cache, mine);
        mine = fresh;
        __atomic_store_n(&shared, fresh, __ATOMIC_RELEASE);
    }
    return done;
}

static json_t *load_deferred(const struct row *row)
{
    return run_crew(row, deferred_updates, keeps_reading);
}

static bool is_memb(const struct variant *variant)
{
    return variant == &variant_memb;
}

/* --------------------------------------------------------------------------------------- storm */

static void free_object(struct variant_head *head)
{
    free(head);
}

static uint64_t storms(const struct row *row, unsigned place)
{
    uint64_t done = 0;

    (void)row;
    for (; load_goes_on(); done++) {
        struct object *object = malloc(sizeof *object);

        memset(object, 1, sizeof *object);
        variant_call(place, &object->head, free_object);
        if (done % 64 == 0)
            variant_switch(place);
    }
    return done;
}

static json_t *load_storm(const struct row *row)
{
    return run_crew(row, storms, keeps_reading);
}

static bool waits(const struct variant *variant)
{
    return variant != &variant_none;
}

static bool has_callbacks(const struct variant *variant)
{
    return !variant->called_at_once;
}

const struct load loads[] = {
    {.name = "read", .what = "a section", .reads = true, .run = load_read},
    {.name = "switch",
     .what = "a context switch, nothing pending",
     .possible = has_switch,
     .run = load_switch},
    {.name = "preempt",
     .what = "a section that is preempted, and two switches",
     .possible = can_be_preempted,
     .run = load_preempt},
    {.name = "idle",
     .what = "a millisecond in which nothing is done",
     .possible = waits,
     .run = load_idle},
    {.name = "synchronize",
     .what = "a wait for a grace period",
     .possible = waits,
     .run = load_synchronize},
    {.name = "call", .what = "from call to callback", .possible = has_callbacks, .run = load_call},
    {.name = "paced",
     .what = "callbacks at a rate: cost and latency of each",
     .rates = true,
     .run = load_paced},
    {.name = "poll",
     .what = "from start to the poll that says over",
     .possible = can_poll,
     .run = load_poll},
    /* Includes `none`, because without readers no thread reads freed objects: the cost of
     * loops that wait for each other's cache lines and for no grace period. */
    {.name = "update", .what = "an update, malloc", .batches = true, .run = load_update},
    {.name = "deferred",
     .what = "an update, free_deferred",
     .possible = is_memb,
     .run = load_deferred},
    {.name = "storm", .what = "a malloc and a call", .possible = has_callbacks, .run = load_storm},
    {.name = NULL},
};
