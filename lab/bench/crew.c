/* SPDX-License-Identifier: MIT */
/*
 * The threads of a run. The main thread does no work of its own: it sets the phases, samples memory
 * every 10 ms, and ends the run when the time, the work or the memory is used up.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define SAMPLE_NS   10000000
#define WARM_NS     50000000
#define PROGRESS_NS 250000000

struct sample {
    uint64_t time, resident, latent, done;
};

struct watch {
    struct sample *samples;
    unsigned count, room;
    uint64_t latent_peak;
    uint64_t started; /* start of the measured phase */
    uint64_t ended;
    uint64_t cpu;      /* of helpers, in that phase */
    uint64_t progress; /* time of the next line */
};

/* ---------------------------------------------------------------------------------- workers */

void worker_out_of_memory(struct worker *worker)
{
    __atomic_store_n(&worker->run->out_of_memory, true, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->run->phase, PHASE_OVER, __ATOMIC_RELAXED);
}

static void measure_phase(struct worker *worker, enum phase phase)
{
    uint64_t wall, cpu;

    worker->phase = phase;
    worker->done_before = worker->done;
    wall = now_ns();
    cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    worker->loop(worker);
    worker->wall_ns = now_ns() - wall;
    worker->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct family *family = worker->run->subject->family;
    int phase;

    pin(worker->cpu);
    if (family->thread_start)
        family->thread_start();
    pthread_barrier_wait(&worker->run->start);
    while ((phase = __atomic_load_n(&worker->run->phase, __ATOMIC_RELAXED)) != PHASE_OVER &&
           !__atomic_load_n(&worker->finished, __ATOMIC_RELAXED))
        measure_phase(worker, (enum phase)phase);
    while (__atomic_load_n(&worker->run->phase, __ATOMIC_RELAXED) != PHASE_OVER)
        usleep(100); /* lives until the run is over, so that its CPU clock can be read */
    if (family->thread_stop)
        family->thread_stop();
    return NULL;
}

static int cpu_of(unsigned worker)
{
    cpu_set_t set;
    unsigned skip;

    sched_getaffinity(0, sizeof set, &set);
    skip = worker % (unsigned)CPU_COUNT(&set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set) && skip-- == 0)
            return cpu;
    }
    return 0;
}

static void start_worker(struct run *run, enum loop kind, unsigned index)
{
    struct worker *worker = &run->worker[run->workers];

    worker->run = run;
    worker->pool = run->pool;
    worker->kind = kind;
    worker->loop = run->subject->family->loops[kind];
    worker->index = index;
    worker->cpu = cpu_of(run->workers);
    run->workers++;
    if (pthread_create(&worker->thread, NULL, work, worker)) {
        fprintf(stderr, "prudence-bench: cannot start thread %u\n", run->workers);
        exit(EXIT_FAILURE);
    }
}

static void start_workers(struct run *run)
{
    unsigned count = run->config.threads + run->config.readers;

    pthread_barrier_init(&run->start, NULL, count + 1);
    for (unsigned i = 0; i < run->config.threads; i++)
        start_worker(run, run->scenario->writer(&run->config, i), i);
    for (unsigned i = 0; i < run->config.readers; i++)
        start_worker(run, run->scenario->reader, i);
    pthread_barrier_wait(&run->start);
}

/* -------------------------------------------------------------------------------- the watch */

static bool is(const struct worker *worker, unsigned loops)
{
    return COUNTS(worker->kind) & loops;
}

static struct sample take_sample(struct run *run, const struct watch *watch)
{
    struct sample sample = {.time = now_ns() - watch->started, .resident = resident_bytes()};
    uint64_t retired = 0;

    for (unsigned i = 0; i < run->workers; i++) {
        const struct worker *worker = &run->worker[i];

        retired += __atomic_load_n(&worker->retired, __ATOMIC_RELAXED);
        if (is(worker, run->scenario->counted))
            sample.done += __atomic_load_n(&worker->done, __ATOMIC_RELAXED);
    }
    if (run->subject->family->latent)
        sample.latent = run->subject->family->latent(retired) * run->config.size;
    return sample;
}

static void show_progress(const struct run *run, struct watch *watch, const struct sample *sample)
{
    double seconds = (double)sample->time / 1e9;
    bool terminal = isatty(STDERR_FILENO);

    if (!run->config.progress || sample->time < watch->progress)
        return;
    watch->progress = sample->time + (terminal ? PROGRESS_NS : 4 * PROGRESS_NS);
    fprintf(stderr, "%s%-16s %5.1f s %9.1f MB resident %8.2f M updates/s%s",
            terminal ? "\r\033[K" : "", run->subject->name, seconds, (double)sample->resident / 1e6,
            seconds > 0 ? (double)sample->done / seconds / 1e6 : 0, terminal ? "" : "\n");
}

static bool work_finished(const struct run *run)
{
    unsigned counted = 0;

    for (unsigned i = 0; i < run->workers; i++) {
        if (!is(&run->worker[i], run->scenario->counted))
            continue;
        if (!__atomic_load_n(&run->worker[i].finished, __ATOMIC_RELAXED))
            return false;
        counted++;
    }
    return counted > 0;
}

static void set_phase(struct run *run, enum phase phase)
{
    __atomic_store_n(&run->phase, phase, __ATOMIC_RELAXED);
}

/* Takes one sample. Returns false if the run is over. */
static bool watch_once(struct run *run, struct watch *watch)
{
    struct sample sample = take_sample(run, watch);

    if (watch->count < watch->room)
        watch->samples[watch->count++] = sample;
    if (sample.latent > watch->latent_peak)
        watch->latent_peak = sample.latent;
    show_progress(run, watch, &sample);
    if (sample.resident > run->config.limit)
        __atomic_store_n(&run->out_of_memory, true, __ATOMIC_RELAXED);
    return !__atomic_load_n(&run->out_of_memory, __ATOMIC_RELAXED) && !work_finished(run);
}

/* Returns the CPU time of the threads other than workers and main; up to a tick per CPU off. */
static int64_t helpers_cpu_ns(const struct run *run)
{
    int64_t helpers = (int64_t)(process_cpu_ns() - clock_ns(CLOCK_THREAD_CPUTIME_ID));

    for (unsigned i = 0; i < run->workers; i++) {
        clockid_t clock;

        pthread_getcpuclockid(run->worker[i].thread, &clock);
        helpers -= (int64_t)clock_ns(clock);
    }
    return helpers;
}

static void watch_phase(struct run *run, struct watch *watch)
{
    uint64_t length = (uint64_t)(run->config.seconds * 1e9);
    int64_t helpers = helpers_cpu_ns(run);
    uint64_t next = watch->started = now_ns();
    uint64_t end = run->config.pairs ? UINT64_MAX : next + length;

    while (watch_once(run, watch) && next < end) {
        next = next + SAMPLE_NS < end ? next + SAMPLE_NS : end;
        sleep_until_ns(next);
    }
    helpers = helpers_cpu_ns(run) - helpers;
    watch->cpu = helpers > 0 ? (uint64_t)helpers : 0;
    set_phase(run, PHASE_OVER);
    watch->ended = now_ns();
}

/* ------------------------------------------------------------------------------- the result */

static void set_number(json_t *result, const char *key, double value)
{
    json_object_set_new(result, key, json_real(value));
}

static void set_bytes(json_t *result, const char *key, uint64_t value)
{
    json_object_set_new(result, key, json_integer((json_int_t)value));
}

/* Adds time and work of the workers that count. */
static void report_work(const struct run *run, const struct watch *watch, json_t *result)
{
    const struct scenario *scenario = run->scenario;
    double wall = 0, cpu = scenario->charged & HELPERS ? (double)watch->cpu : 0;
    double done = 0, rate = 0, reads = 0;
    uint64_t errors = 0;

    for (unsigned i = 0; i < run->workers; i++) {
        const struct worker *worker = &run->worker[i];
        double own = (double)(worker->done - worker->done_before);

        errors += worker->errors;
        if (is(worker, scenario->charged))
            cpu += (double)worker->cpu_ns;
        if (is(worker, scenario->counted)) {
            wall += (double)worker->wall_ns;
            done += own;
            rate += worker->wall_ns ? own / (double)worker->wall_ns * 1e9 : 0;
        } else if (worker->kind == scenario->reader) {
            reads += own;
        }
    }
    set_number(result, "pairs_done", done);
    set_number(result, "ns_per_pair_wall", done > 0 ? wall / done : 0);
    set_number(result, "ns_per_pair_cpu", done > 0 ? cpu / done : 0);
    set_number(result, "helpers_cpu_seconds", (double)watch->cpu / 1e9);
    set_number(result, "pairs_per_second", rate);
    set_number(result, "reads_per_second",
               reads * 1e9 / (double)(watch->ended - watch->started + 1));
    set_bytes(result, "reader_errors", errors);
}

static uint64_t resident_most(const struct watch *watch, unsigned from, unsigned to)
{
    uint64_t most = 0;

    for (unsigned i = from; i < to; i++) {
        if (watch->samples[i].resident > most)
            most = watch->samples[i].resident;
    }
    return most;
}

/* Reports whether memory is flat: the peak of the second half less the peak of the first. */
static void report_growth(const struct watch *watch, json_t *result)
{
    unsigned half = watch->count / 2;
    uint64_t first = resident_most(watch, 0, half);
    uint64_t second = resident_most(watch, half, watch->count);

    json_object_set_new(result, "rss_growth_bytes", json_integer((json_int_t)(second - first)));
}

/* Returns rows of milliseconds, resident bytes, latent bytes, pairs so far. */
static json_t *samples_to_json(const struct watch *watch)
{
    json_t *rows = json_array();

    for (unsigned i = 0; i < watch->count; i++) {
        const struct sample *sample = &watch->samples[i];

        json_array_append_new(rows,
                              json_pack("[f, I, I, I]", (double)sample->time / 1e6,
                                        (json_int_t)sample->resident, (json_int_t)sample->latent,
                                        (json_int_t)sample->done));
    }
    return rows;
}

static void report(struct run *run, const struct watch *watch, json_t *result)
{
    report_work(run, watch, result);
    set_number(result, "measured_seconds", (double)(watch->ended - watch->started) / 1e9);
    set_bytes(result, "latent_peak_bytes", watch->latent_peak);
    report_growth(watch, result);
    json_object_set_new(result, "out_of_memory", json_boolean(run->out_of_memory));
    if (run->latencies)
        json_object_set_new(result, "latency_ns", histogram_to_json(run->latencies));
    if (run->scenario->samples)
        json_object_set_new(result, "samples", samples_to_json(watch));
    if (run->subject->family->report)
        run->subject->family->report(run, result);
    set_bytes(result, "peak_rss_bytes", resident_bytes_peak());
}

static double drain_seconds(const struct run *run)
{
    uint64_t begin = now_ns();

    for (unsigned i = 0; i < run->workers; i++)
        pthread_join(run->worker[i].thread, NULL);
    if (run->subject->family->quiesce)
        run->subject->family->quiesce();
    return (double)(now_ns() - begin) / 1e9;
}

/* Allocates room for every sample that the time allows, and touches it now, so that the baseline
 * includes it. */
static void watch_start(struct run *run, struct watch *watch, json_t *result)
{
    watch->room = (unsigned)(run->config.seconds * 1e9 / SAMPLE_NS) + 100;
    watch->samples = calloc(watch->room, sizeof *watch->samples);
    if (!watch->samples)
        abort();
    memset(watch->samples, 0, watch->room * sizeof *watch->samples);
    set_bytes(result, "baseline_rss_bytes", resident_bytes());
}

void crew_work(struct run *run, json_t *result)
{
    struct watch watch = {.progress = PROGRESS_NS};
    bool warm = run->scenario->warms_up && !run->config.pairs;

    watch_start(run, &watch, result);
    set_phase(run, warm ? PHASE_WARM : PHASE_MEASURED);
    start_workers(run);
    if (warm) {
        sleep_until_ns(now_ns() + WARM_NS);
        set_phase(run, PHASE_MEASURED);
    }
    watch_phase(run, &watch);
    set_number(result, "drain_seconds", drain_seconds(run));
    report(run, &watch, result);
    free(watch.samples);
}
