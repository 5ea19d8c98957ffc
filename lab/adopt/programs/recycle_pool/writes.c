/* SPDX-License-Identifier: MIT */
/*
 * Drives a pool as a file server's threads do.
 *
 *     writes SECONDS     measures; prints one line of JSON
 *     writes SECONDS PER_SECOND
 *                        the steady load alone, with N writes: prints how many were made, and
 *                        the memory at each second
 *     writes check       checks; prints "ok NAME" or "not ok NAME: why" for each
 *     writes refused     the same, where no thread can be made
 *
 * READERS threads serve requests: online, they read versions of blocks; between requests they
 * are offline and sleep. Three loads follow each other:
 *
 * steady:   for SECONDS, WRITERS threads, which are online, replace versions.
 * handover: one thread, on one CPU, replaces HANDED versions; another thread, on another CPU,
 *           retires the old ones.
 * burst:    BURST objects are retired at once. When all can be allocated again, they are reclaimed.
 *
 * A writer pauses while the process is larger than CEILING_MB, as a server with a memory limit
 * would.
 */
#define _GNU_SOURCE
#include "pool.h"

#include "../driver.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <urcu/urcu-qsbr.h>

#define READERS      80
#define WRITERS      2
#define BLOCKS       16384
#define LOOKS        64     /* of a request */
#define WRITES       32     /* of a request */
#define REST_US      5000   /* of a reader between requests */
#define LONG_REST_US 100000 /* the same, at a pace */
#define HANDED       350000
#define RING         1024
#define BURST        400000
#define CEILING_MB   1024
#define SAMPLE_US    20000
#define TIMED        16 /* one of this many writes is timed */
#define STEP         16 /* classes of times for each power of two */
#define CLASSES      (40 * STEP)

struct version {
    _Atomic uint64_t stamp;
    char contents[OBJECT - sizeof(uint64_t)];
};

static _Atomic(struct version *) blocks[BLOCKS];
static atomic_bool over, paused, writers_over;
static double request_ns; /* of a writer that makes PER_SECOND; 0: it makes as many as it can */
static atomic_uint_fast64_t changed; /* versions that changed under a reader */

struct thread {
    pthread_t id;
    uint64_t random, writes, failures;
    uint32_t times[CLASSES]; /* of timed writes */
};

/* ---------------------------------------------------------------------------------- helpers */

static void die(const char *what, int error)
{
    fprintf(stderr, "writes: %s: %s\n", what, strerror(error));
    exit(1);
}

static double peak_mb(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024 / 1e6;
}

static unsigned class_of(uint64_t ns)
{
    unsigned power = ns < STEP ? 0 : 63 - __builtin_clzll(ns);
    unsigned found = ns < STEP ? ns : power * STEP + (ns >> (power - 4) & (STEP - 1));

    return found < CLASSES ? found : CLASSES - 1;
}

/* The least time of a class, whose number is `slot`. */
static double time_of(unsigned slot)
{
    unsigned power = slot / STEP;

    return power < 4 ? slot : (double)(UINT64_C(1) << (power - 4)) * (STEP + slot % STEP);
}

static void start(struct thread *thread, void *(*run)(void *), unsigned number)
{
    int error;

    memset(thread, 0, sizeof *thread);
    thread->random = 88172645463325252u + number * 7919u;
    error = pthread_create(&thread->id, NULL, run, thread);
    if (error)
        die("pthread_create", error);
}

/* The first or the last CPU that this process may use. */
static void pin(bool last)
{
    cpu_set_t all, one;
    int chosen = -1;

    if (sched_getaffinity(getpid(), sizeof all, &all))
        die("sched_getaffinity", errno);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (last || chosen < 0))
            chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET(chosen, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        die("sched_setaffinity", errno);
}

/* --------------------------------------------------------------------------- reading, writing */

/* Finds LOOKS versions, and checks at the end of the request that they are still the same. */
static void serve(struct thread *self)
{
    const struct version *found[LOOKS];
    uint64_t stamps[LOOKS];

    for (unsigned i = 0; i < LOOKS; i++) {
        found[i] = atomic_load(&blocks[next_random(&self->random) % BLOCKS]);
        stamps[i] = found[i] ? atomic_load(&found[i]->stamp) : 0;
    }
    for (unsigned i = 0; i < LOOKS; i++)
        if (found[i] && atomic_load(&found[i]->stamp) != stamps[i])
            atomic_fetch_add(&changed, 1);
}

static void *run_reader(void *argument)
{
    struct thread *self = argument;
    unsigned rest = request_ns > 0 ? LONG_REST_US : REST_US;

    urcu_qsbr_register_thread();
    while (!atomic_load(&over)) {
        serve(self);
        urcu_qsbr_thread_offline();
        usleep(rest / 2 + next_random(&self->random) % rest);
        urcu_qsbr_thread_online();
    }
    urcu_qsbr_unregister_thread();
    return NULL;
}

/* Returns the old version, which no new reader finds; in `*failed` whether there was no memory. */
static struct version *publish(struct thread *self, bool *failed)
{
    struct version *fresh = pool_allocate();
    uint64_t stamp = next_random(&self->random);

    *failed = !fresh;
    if (!fresh)
        return NULL;
    atomic_store_explicit(&fresh->stamp, stamp, memory_order_relaxed);
    return atomic_exchange(&blocks[stamp % BLOCKS], fresh);
}

static void write_block(struct thread *self)
{
    bool failed;
    struct version *old = publish(self, &failed);

    if (old)
        pool_retire(old);
    self->failures += failed;
    self->writes += !failed;
}

static void write_timed(struct thread *self)
{
    uint64_t start_ns = now_ns(CLOCK_MONOTONIC);

    write_block(self);
    self->times[class_of(now_ns(CLOCK_MONOTONIC) - start_ns)]++;
}

static void rest_us(unsigned us)
{
    urcu_qsbr_thread_offline();
    usleep(us);
    urcu_qsbr_thread_online();
}

/* Waits until the time of the next request. Missed requests are not made up for. */
static void keep_pace(uint64_t *next_ns)
{
    uint64_t now = now_ns(CLOCK_MONOTONIC);

    *next_ns = *next_ns + request_ns > now ? *next_ns + request_ns : now;
    if (*next_ns > now)
        rest_us((*next_ns - now) / 1000);
}

static void *run_writer(void *argument)
{
    struct thread *self = argument;
    uint64_t next_ns = now_ns(CLOCK_MONOTONIC);

    urcu_qsbr_register_thread();
    while (!atomic_load(&writers_over)) {
        for (unsigned i = 0; i < WRITES; i++)
            if (i % TIMED)
                write_block(self);
            else
                write_timed(self);
        urcu_qsbr_quiescent_state();
        if (atomic_load(&paused))
            rest_us(1000);
        if (request_ns > 0)
            keep_pace(&next_ns);
    }
    urcu_qsbr_unregister_thread();
    return NULL;
}

static void start_readers(struct thread *readers)
{
    atomic_store(&over, false);
    for (unsigned i = 0; i < READERS; i++)
        start(&readers[i], run_reader, i);
}

static void stop_readers(struct thread *readers)
{
    atomic_store(&over, true);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i].id, NULL);
}

static void retire_blocks(void)
{
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct version *old = atomic_exchange(&blocks[i], NULL);

        if (old)
            pool_retire(old);
    }
}

/* -------------------------------------------------------------------------------- the loads */

struct steady {
    double writes_s, cpu_ns, p999_us, peak_mb, drift_mb, paused_percent;
};

/* Sleeps for `seconds` and holds writers below the ceiling. */
static void watch(double seconds, struct steady *found)
{
    uint64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + seconds * 1e9;
    uint64_t early = begin + seconds * 1e9 / 4, samples = 0, held = 0, now;
    double early_mb = 0, mb = 0;

    while ((now = now_ns(CLOCK_MONOTONIC)) < end) {
        mb = resident_mb();
        samples++;
        held += mb > CEILING_MB;
        atomic_store(&paused, mb > CEILING_MB);
        if (now < early)
            early_mb = mb > early_mb ? mb : early_mb;
        found->peak_mb = mb > found->peak_mb ? mb : found->peak_mb;
        usleep(SAMPLE_US);
    }
    found->drift_mb = found->peak_mb - early_mb;
    found->paused_percent = 100.0 * held / samples;
}

static double p999_us(const struct thread *writers)
{
    uint64_t all = 0, below = 0;

    for (unsigned i = 0; i < WRITERS; i++)
        for (unsigned slot = 0; slot < CLASSES; slot++)
            all += writers[i].times[slot];
    for (unsigned slot = 0; slot < CLASSES; slot++) {
        for (unsigned i = 0; i < WRITERS; i++)
            below += writers[i].times[slot];
        if (below * 1000.0 >= all * 999.0)
            return time_of(slot) / 1e3;
    }
    return 0;
}

static void start_writers(struct thread *writers)
{
    atomic_store(&writers_over, false);
    for (unsigned i = 0; i < WRITERS; i++)
        start(&writers[i], run_writer, READERS + i);
}

/* Returns how many writes were made. */
static uint64_t stop_writers(struct thread *writers)
{
    uint64_t writes = 0;

    atomic_store(&writers_over, true);
    for (unsigned i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].id, NULL);
        writes += writers[i].writes;
    }
    return writes;
}

static struct steady run_steady(double seconds)
{
    static struct thread writers[WRITERS];
    struct steady found = {0};
    uint64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), wall = now_ns(CLOCK_MONOTONIC), writes;

    start_writers(writers);
    watch(seconds, &found);
    writes = stop_writers(writers);
    found.cpu_ns = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / writes;
    found.writes_s = writes * 1e9 / (now_ns(CLOCK_MONOTONIC) - wall);
    found.p999_us = p999_us(writers);
    return found;
}

static _Atomic(void *) ring[RING];

static void *run_retiring(void *unused)
{
    (void)unused;
    pin(true);
    for (unsigned i = 0; i < HANDED; i++) {
        void *old;

        while (!(old = atomic_exchange(&ring[i % RING], NULL)))
            sched_yield();
        pool_retire(old);
    }
    return NULL;
}

static void *run_handing(void *argument)
{
    struct thread *self = argument;

    pin(false);
    for (unsigned i = 0; i < HANDED;) {
        bool failed;
        struct version *old = publish(self, &failed);

        if (failed)
            die("handover", ENOMEM);
        if (!old)
            continue; /* the first version of a block */
        while (atomic_load(&ring[i % RING]))
            sched_yield();
        atomic_store(&ring[i++ % RING], old);
    }
    return NULL;
}

/* Growth, in MB. */
static double run_handover(void)
{
    struct thread handing, retiring;
    double start_mb = resident_mb();

    start(&retiring, run_retiring, 1000);
    start(&handing, run_handing, 1001);
    pthread_join(handing.id, NULL);
    pthread_join(retiring.id, NULL);
    return resident_mb() - start_mb;
}

/* Objects that were reclaimed, per second. */
static double run_burst(void)
{
    void **objects = malloc(BURST * sizeof *objects);
    uint64_t begin;

    if (!objects)
        die("burst", ENOMEM);
    for (unsigned i = 0; i < BURST; i++) {
        objects[i] = pool_allocate();
        if (!objects[i])
            die("burst", ENOMEM);
        memset(objects[i], 1, OBJECT);
    }
    begin = now_ns(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < BURST; i++)
        pool_retire(objects[i]);
    pool_settle();
    free(objects);
    return BURST * 1e9 / (now_ns(CLOCK_MONOTONIC) - begin);
}

/* Dies if an object remains, or a version has changed under a reader. */
static void finish(struct thread *readers)
{
    size_t left;

    stop_readers(readers);
    retire_blocks();
    left = pool_stop();
    if (!left && !atomic_load(&changed))
        return;
    fprintf(stderr, "writes: %zu objects remain, %ju changed under a reader\n", left,
            (uintmax_t)atomic_load(&changed));
    exit(1);
}

static void measure(double seconds)
{
    static struct thread readers[READERS];
    struct steady steady;
    double handover, burst, after;

    start_readers(readers);
    handover = run_handover();
    steady = run_steady(seconds);
    burst = run_burst();
    sleep(2);
    after = resident_mb();
    finish(readers);
    printf(
        "{\"writes\": %.0f, \"cpu_ns\": %.1f, \"p999_us\": %.2f, \"steady_mb\": %.1f, "
        "\"drift_mb\": %.1f, \"paused_percent\": %.1f, \"handover_mb\": %.1f, "
        "\"reclaimed\": %.0f, \"peak_mb\": %.1f, \"after_mb\": %.1f}\n",
        steady.writes_s, steady.cpu_ns, steady.p999_us, steady.peak_mb, steady.drift_mb,
        steady.paused_percent, handover, burst, peak_mb(), after);
}

/* The steady load at a pace. */
static void endure(double seconds, double per_second)
{
    static struct thread readers[READERS], writers[WRITERS];

    request_ns = 1e9 * WRITERS * WRITES / per_second;
    start_readers(readers);
    start_writers(writers);
    printf("{\"bytes\": [");
    for (double i = 0; i < seconds; i++) {
        sleep(1);
        printf("%s%.0f", i > 0 ? ", " : "", resident_mb() * 1e6);
    }
    printf("], \"writes\": %ju}\n", (uintmax_t)stop_writers(writers));
    finish(readers);
}

/* ------------------------------------------------------------------------------------- checks */

static void say(const char *name, bool good, const char *why)
{
    if (good)
        printf("ok %s\n", name);
    else
        printf("not ok %s: %s\n", name, why);
}

/* An object that is retired while a reader is online is not handed out. */
static bool reader_keeps(void)
{
    enum { COUNT = 4096 };
    static void *objects[COUNT];
    void *held = pool_allocate();
    bool kept = true;

    pin(false);
    urcu_qsbr_register_thread();
    pool_retire(held);
    for (unsigned i = 0; i < COUNT; i++) {
        if (i == COUNT / 2)
            usleep(50000); /* a sweeper or a grace period that does not wait has its turn */
        objects[i] = pool_allocate();
        kept &= objects[i] && objects[i] != held;
    }
    urcu_qsbr_unregister_thread();
    for (unsigned i = 0; i < COUNT; i++)
        pool_retire(objects[i]);
    return kept;
}

/* In a thread, because it pins itself. */
static void *check_keeping(void *unused)
{
    (void)unused;
    say("an object stays while a reader is online", reader_keeps(), "it was handed out");
    return NULL;
}

static void check(void)
{
    static struct thread readers[READERS];
    struct thread keeping;

    start(&keeping, check_keeping, 0);
    pthread_join(keeping.id, NULL);
    start_readers(readers);
    run_steady(1);
    run_burst();
    stop_readers(readers);
    say("no version changes under a reader", !atomic_load(&changed), "some did");
    retire_blocks();
    say("no object remains at the end", !pool_stop(), "some are");
}

/* The superuser has no limit of threads, so this becomes another user. */
static void check_refused(void)
{
    struct rlimit one = {1, 1};

    if (setrlimit(RLIMIT_NPROC, &one) || (!geteuid() && setuid(65534)))
        die("RLIMIT_NPROC", errno);
    say("a thread that is refused is an error", pool_start() == EAGAIN, "it is none");
}

int main(int count, char **words)
{
    const char *what = count == 2 || count == 3 ? words[1] : "";
    bool checks = !strcmp(what, "check"), refused = !strcmp(what, "refused"), paced = count == 3;
    double seconds = atof(what), per_second = paced ? atof(words[2]) : 0;
    int error;

    if (((paced || !(checks || refused)) && seconds <= 0) || (paced && per_second <= 0)) {
        fprintf(stderr, "usage: writes SECONDS [PER_SECOND] | check | refused\n");
        return 2;
    }
    if (refused) {
        check_refused();
        return 0;
    }
    error = pool_start();
    if (error)
        die("pool", error);
    if (checks)
        check();
    else if (paced)
        endure(seconds, per_second);
    else
        measure(seconds);
    return 0;
}
