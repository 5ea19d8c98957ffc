/* SPDX-License-Identifier: MIT */
/*
 * prudence-calibrate measures the costs of operations on this machine, and writes them as JSON.
 * `prudence-advise calibrate` runs it. The measurements take turns: one sample of each, then the
 * next round.
 */
#define _GNU_SOURCE
#include "calibrate.h"

#include <argp.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <prudence/prudence.h>

#include "arguments.h"
#include "host.h"
#include "measure.h"
#include "statistics.h"

#define PAIRS_MOST        64 /* pairs of CPUs; with more CPUs, some pairs of each distance */
#define REPEATS_MOST      1001
#define MEASUREMENTS_MOST (64 + PAIRS_MOST)

unsigned cpus[CPUS_MOST], cpu_count;

void fail(const char *what)
{
    fprintf(stderr, "prudence-calibrate: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* -------------------------------------------------------------------------------------- threads */

void pin(unsigned cpu)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);

    if (!set)
        fail("a set of CPUs");
    CPU_ZERO_S(size, set);
    CPU_SET_S(cpu, size, set);
    if (sched_setaffinity(0, size, set))
        fail("sched_setaffinity");
    CPU_FREE(set);
}

static void find_cpus(void)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MOST);
    size_t size = CPU_ALLOC_SIZE(CPUS_MOST);

    if (!set || sched_getaffinity(0, size, set))
        fail("sched_getaffinity");
    for (unsigned cpu = 0; cpu < CPUS_MOST; cpu++)
        if (CPU_ISSET_S(cpu, size, set))
            cpus[cpu_count++] = cpu;
    CPU_FREE(set);
}

static struct {
    pthread_t thread;
    unsigned cpu;
    void (*body)(void *argument);
    void *argument;
    bool runs, over; /* atomic */
} partner;

static void *run_partner(void *unused)
{
    (void)unused;
    pin(partner.cpu);
    __atomic_store_n(&partner.runs, true, __ATOMIC_RELEASE);
    partner.body(partner.argument);
    return NULL;
}

void start_partner(unsigned cpu, void (*body)(void *argument), void *argument)
{
    partner.cpu = cpu;
    partner.body = body;
    partner.argument = argument;
    __atomic_store_n(&partner.over, false, __ATOMIC_RELAXED);
    __atomic_store_n(&partner.runs, false, __ATOMIC_RELAXED);
    errno = pthread_create(&partner.thread, NULL, run_partner, NULL);
    if (errno)
        fail("pthread_create");
    while (!__atomic_load_n(&partner.runs, __ATOMIC_ACQUIRE))
        sched_yield();
}

bool partner_over(void)
{
    return __atomic_load_n(&partner.over, __ATOMIC_RELAXED);
}

void stop_partner(void)
{
    __atomic_store_n(&partner.over, true, __ATOMIC_RELEASE);
    pthread_join(partner.thread, NULL);
}

/* --------------------------------------------------------------------------------- measurements */

static struct measurement measurements[MEASUREMENTS_MOST];
static unsigned measurement_count;
static double *samples[MEASUREMENTS_MOST];
static uint64_t counts[MEASUREMENTS_MOST]; /* operations per sample */
static bool missing[MEASUREMENTS_MOST];    /* unavailable on this system */

double time_of(operations_function *operations, uint64_t count)
{
    uint64_t start = now_ns();

    operations(count);
    return (double)(now_ns() - start);
}

double time_operations(const struct measurement *measurement, uint64_t count)
{
    return time_of(measurement->operations, count);
}

static void add(struct measurement measurement)
{
    if (measurement.cpus <= cpu_count)
        measurements[measurement_count++] = measurement;
}

static void add_chase(const char *name, const char *title, uint64_t bytes)
{
    if (bytes)
        add((struct measurement){name, title, time_chase, 1, .bytes = bytes});
}

static void list_measurements(void)
{
    const struct measurement alone[] = {
        {"instruction", "instruction", time_operations, 1, .operations = instructions},
        {"clock", "clock read", time_operations, 1, .operations = clock_reads},
        {"atomic_increment", "atomic increment", time_operations, 1,
         .operations = atomic_increments},
        {"cmpxchg_increment", "cmpxchg increment", time_operations, 1,
         .operations = cmpxchg_increments},
        {"fence", "store and full fence", time_operations, 1, .operations = fences},
        {"membarrier", "membarrier, alone", time_membarrier, .cpus = 1},
        {"membarrier_beside", "membarrier, with a busy thread", time_membarrier_shared, .cpus = 2},
        {"mutex", "mutex", time_operations, 1, .operations = mutex_pairs},
        {"futex_wait", "futex, a wait that is refused", time_operations, 1,
         .operations = futex_waits},
        {"futex_wake", "futex, a wake of nobody", time_operations, 1, .operations = futex_wakes},
        {"spinlock", "spinlock", time_operations, 1, .operations = spinlock_pairs},
        {"read_lock", "rwlock, read", time_operations, 1, .operations = read_lock_pairs},
        {"write_lock", "rwlock, write", time_operations, 1, .operations = write_lock_pairs},
        {"sequence_read", "seqlock, read", time_operations, 1, .operations = sequence_reads},
        {"reader_free", "read section, fence-free", time_library, 1, .of_library = READER},
        {"reader_fenced", "read section, fenced", time_library, 1, .of_library = READER,
         .fenced = true},
        {"quiescent", "quiescent state, qsbr", time_library, 1, .of_library = QUIESCENT},
        {"pair_free", "allocation and deferral, fence-free", time_library, 1, .of_library = PAIR},
        {"pair_fenced", "allocation and deferral, fenced", time_library, 1, .of_library = PAIR,
         .fenced = true},
        {"hazard_free", "hazard pointer, fence-free", time_library, 1, .of_library = HAZARD},
        {"hazard_fenced", "hazard pointer, fenced", time_library, 1, .of_library = HAZARD,
         .fenced = true},
        {"hazard_pair", "allocation and deferral, hazard", time_library, 1,
         .of_library = HAZARD_PAIR},
        {"grace_period_free", "grace period, fence-free", time_library, 1,
         .of_library = GRACE_PERIOD},
        {"grace_period_fenced", "grace period, fenced", time_library, 1, .of_library = GRACE_PERIOD,
         .fenced = true},
        {"grace_period_qsbr", "grace period, qsbr", time_library, 1,
         .of_library = GRACE_PERIOD_QSBR},
        {"grace_period_beside_free", "grace period, fence-free, with a reader", time_library, 2,
         .of_library = GRACE_PERIOD_BESIDE},
        {"grace_period_beside_fenced", "grace period, fenced, with a reader", time_library, 2,
         .of_library = GRACE_PERIOD_BESIDE, .fenced = true},
    };
    uint64_t first = cache_bytes(1), second = cache_bytes(2), third = cache_bytes(3);
    uint64_t last = third ? third : second;

    for (unsigned i = 0; i < sizeof alone / sizeof *alone; i++)
        add(alone[i]);
    add_chase("load_l1", "load, first-level cache", first / 2);
    add_chase("load_l2", "load, second-level cache", second / 2);
    add_chase("load_l3", "load, third-level cache", third / 4 > second ? third / 4 : 0);
    add_chase("load_memory", "load, memory",
              last ? 2 * last < (256u << 20) ? 2 * last : 256u << 20 : 64u << 20);
    if (cpu_count < 2)
        return;
    add((struct measurement){"atomic_transfer", "atomic increment, contended", time_atomic_transfer,
                             2, .a = cpus[0], .b = cpus[1]});
    add((struct measurement){"read_transfer", "transfer after a read", time_read_transfer, 2,
                             .a = cpus[0], .b = cpus[1]});
}

/* Adds all pairs of CPUs, or with many CPUs, equally many of each distance between their
 * numbers. */
static void list_transfers(void)
{
    unsigned all = cpu_count * (cpu_count - 1) / 2, step = (all + PAIRS_MOST - 1) / PAIRS_MOST,
             number = 0;

    for (unsigned distance = 1; distance < cpu_count; distance++)
        for (unsigned i = 0; i + distance < cpu_count; i++)
            if (number++ % step == 0)
                add((struct measurement){"transfer", "blind transfer", time_blind_transfer, 2,
                                         .a = cpus[i], .b = cpus[i + distance]});
}

/* Finds the number of operations that take `seconds`. */
static void tune(unsigned index, double seconds)
{
    const struct measurement *measurement = &measurements[index];
    uint64_t count = 64;

    for (;;) {
        double took = measurement->time(measurement, count);

        if (took < 0) {
            missing[index] = true;
            return;
        }
        if (took >= seconds * 1e9 || count > UINT64_MAX / 4)
            break;
        count *= 2;
    }
    counts[index] = count;
}

static void measure(unsigned repeats, double seconds)
{
    for (unsigned i = 0; i < measurement_count; i++) {
        samples[i] = calloc(repeats, sizeof *samples[i]);
        if (!samples[i])
            fail("samples");
        tune(i, seconds);
    }
    for (unsigned round = 0; round < repeats; round++)
        for (unsigned i = 0; i < measurement_count; i++)
            if (!missing[i])
                samples[i][round] =
                    measurements[i].time(&measurements[i], counts[i]) / (double)counts[i];
}

/* --------------------------------------------------------------------------------------- result */

static json_t *spread(unsigned index, unsigned repeats)
{
    double *values = samples[index];

    return json_pack(
        "{s:f, s:f, s:f, s:f, s:f}", "median", numbers_median(values, repeats), "q1",
        numbers_quantile(values, repeats, 0.25), "q3", numbers_quantile(values, repeats, 0.75),
        "min", numbers_quantile(values, repeats, 0), "max", numbers_quantile(values, repeats, 1));
}

/* Returns a number that sysfs has about a CPU; -1: unknown. */
static long number_of(unsigned cpu, const char *name)
{
    char path[128];
    long number = -1;
    FILE *file;

    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", cpu, name);
    file = fopen(path, "re");

    if (file && fscanf(file, "%ld", &number) != 1)
        number = -1;
    if (file)
        fclose(file);
    return number;
}

static int node_of(unsigned cpu)
{
    for (int node = 0; node < 1024; node++) {
        char path[128];

        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/node%d", cpu, node);
        if (!access(path, F_OK))
            return node;
    }
    return 0;
}

/* Describes each CPU's place: which CPUs share a core, a last-level cache, a node. -1: unknown. */
static json_t *topology(void)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < cpu_count; i++) {
        const unsigned cpu = cpus[i];

        json_array_append_new(list, json_pack("{s:i, s:i, s:i, s:i, s:i}", "cpu", (int)cpu, "core",
                                              (int)number_of(cpu, "topology/core_id"), "package",
                                              (int)number_of(cpu, "topology/physical_package_id"),
                                              "cache", (int)number_of(cpu, "cache/index3/id"),
                                              "node", node_of(cpu)));
    }
    return list;
}

static json_t *document(unsigned repeats, double seconds, const double load[2], json_t *host)
{
    json_t *costs = json_object(), *titles = json_object(), *transfers = json_array();

    for (unsigned i = 0; i < measurement_count; i++) {
        const struct measurement *measurement = &measurements[i];
        json_t *found;

        if (missing[i])
            continue;
        found = spread(i, repeats);
        if (measurement->time == time_blind_transfer) {
            json_object_set_new(found, "a", json_integer(measurement->a));
            json_object_set_new(found, "b", json_integer(measurement->b));
            json_array_append_new(transfers, found);
        } else {
            json_object_set_new(costs, measurement->name, found);
            json_object_set_new(titles, measurement->name, json_string(measurement->title));
        }
    }
    return json_pack(
        "{s:s, s:i, s:s, s:o, s:[f,f], s:i, s:f, s:{s:I, s:I, s:I}, s:o, s:o, s:o, s:o}", "program",
        "prudence-calibrate", "format", 1, "prudence", prudence_version(), "host", host, "load",
        load[0], load[1], "repeats", (int)repeats, "seconds", seconds, "caches", "l1",
        (json_int_t)cache_bytes(1), "l2", (json_int_t)cache_bytes(2), "l3",
        (json_int_t)cache_bytes(3), "topology", topology(), "titles", titles, "costs", costs,
        "transfers", transfers);
}

/* -------------------------------------------------------------------------------------- options */

struct request {
    uint64_t repeats;
    double seconds;
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct request *request = state->input;

    switch (key) {
    case 'r':
        request->repeats = argument_number(state, key, text, 3, REPEATS_MOST);
        return 0;
    case 's':
        request->seconds = argument_real(state, key, text, 10);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s': there are no arguments", text);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    const struct argp_option options[] = {
        {"repeats", 'r', "N", 0, "samples of each measurement, which take turns (21)", 0},
        {"seconds", 's', "S", 0, "length of a sample (0.001)", 0},
        {0},
    };
    const struct argp argp = {
        options, parse,
        NULL,    "Measure the costs of operations on this machine; JSON on standard output.",
        NULL,    NULL,
        NULL};
    struct request request = {.repeats = 21, .seconds = 0.001};
    double load[2] = {0, 0};
    json_t *result, *host;

    argp_parse(&argp, argc, argv, 0, NULL, &request);
    find_cpus();
    host = host_description(); /* before this thread is bound to a CPU */
    start_modes();
    pin(cpus[0]);
    list_measurements();
    list_transfers();
    getloadavg(&load[0], 1);
    measure((unsigned)request.repeats, request.seconds);
    getloadavg(&load[1], 1);
    stop_modes();
    result = document((unsigned)request.repeats, request.seconds, load, host);
    if (!result || json_dumpf(result, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) ||
        puts("") < 0 || fflush(stdout))
        fail("standard output");
    return EXIT_SUCCESS;
}
