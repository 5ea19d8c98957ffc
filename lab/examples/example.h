/* SPDX-License-Identifier: MIT */
/*
 * Common parts of the examples: main() and its arguments, the moment in the middle of a reader or a
 * writer at which a check lets another one run, and the measuring loop. An example is this file and
 * the six functions declared below.
 *
 * EXAMPLE: checks the program; exits with 0, or with 1 and the fault
 * EXAMPLE --mistake: the same with the mistake that the example's page names; exits with 1
 * EXAMPLE --measure [MS]: ns per operation before and after, from MS milliseconds for each figure
 * (100)
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#pragma GCC diagnostic ignored "-Wunused-parameter" /* `random`, where there is nothing to choose */

/* Each example defines these. `random` chooses the data. A read returns WRONG after an impossible
 * result. */
#define WRONG (-1)
static void set_up(void);
static const char *check(void); /* step by step, in one thread; returns the fault, or NULL */
static long read_before(unsigned random);
static void update_before(unsigned random);
static long read_after(unsigned random);
static void update_after(unsigned random);

static bool mistake; /* --mistake */

#define MUST(condition)                                                                            \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition), exit(2)))

/* Other threads may do anything at the call of `meanwhile`. A check has one action done there,
 * once, in this thread. */
static __thread void (*example_meanwhile)(void);

static inline void meanwhile(void)
{
    void (*other)(void) = example_meanwhile;

    if (__builtin_expect(other != NULL, 0)) {
        example_meanwhile = NULL;
        other();
    }
}

/* ------------------------------------------------------------------------------ running threads */

#define EXAMPLE_CPUS_MAX 8
#define EXAMPLE_REPEATS  5

struct example_way {
    long (*read)(unsigned random);
    void (*update)(unsigned random);
};

struct example_run {
    const struct example_way *way;
    unsigned updates; /* per 1,000 operations */
    unsigned random;
    uint64_t operations, wrong;
};

static const struct example_way example_before = {read_before, update_before};
static const struct example_way example_after = {read_after, update_after};
static bool example_stop; /* atomic */

/* Number of threads that use the example. It changes only while there is one. */
static unsigned example_threads __attribute__((unused)) = 1;

static void *example_work(void *argument)
{
    struct example_run *run = (struct example_run *)argument;
    uint64_t operations = 0, wrong = 0;
    unsigned random = run->random;

    /* Do at least some operations, because a busy machine may stop this thread before it runs. */
    for (; operations < 100 || !__atomic_load_n(&example_stop, __ATOMIC_RELAXED); operations++) {
        random ^= random << 13; /* xorshift */
        random ^= random >> 17;
        random ^= random << 5;
        if (random % 1000 < run->updates)
            run->way->update(random / 1000);
        else
            wrong += run->way->read(random / 1000) < 0;
    }
    run->operations = operations;
    run->wrong = wrong;
    return NULL;
}

static inline double example_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Returns ns per operation and thread, and adds to *wrong. */
static inline double example_storm(const struct example_way *way, unsigned threads,
                                   unsigned updates, unsigned milliseconds, uint64_t *wrong)
{
    struct example_run runs[EXAMPLE_CPUS_MAX + 1];
    pthread_t ids[EXAMPLE_CPUS_MAX + 1];
    const double begin = example_now();
    uint64_t operations = 0;

    __atomic_store_n(&example_stop, false, __ATOMIC_RELAXED);
    example_threads = threads;
    for (unsigned i = 0; i < threads; i++) {
        runs[i] = (struct example_run){.way = way, .updates = updates, .random = 12345 * (i + 1)};
        MUST(pthread_create(&ids[i], NULL, example_work, &runs[i]) == 0);
    }
    usleep(milliseconds * 1000);
    __atomic_store_n(&example_stop, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        operations += runs[i].operations;
        *wrong += runs[i].wrong;
    }
    example_threads = 1;
    return (example_now() - begin) * threads / (double)operations;
}

/* ---------------------------------------------------------------------------------- the program */

static inline unsigned example_cpus(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    return cpus > EXAMPLE_CPUS_MAX ? EXAMPLE_CPUS_MAX : cpus < 1 ? 1 : (unsigned)cpus;
}

static inline int example_compare(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static inline void example_measure(unsigned milliseconds)
{
    static const unsigned updates[] = {0, 10, 100};
    struct prudence_stats stats;
    uint64_t wrong = 0;

    printf("%s: ns an operation and thread, medians of %d runs of %u ms\n",
           program_invocation_short_name, EXAMPLE_REPEATS, milliseconds);
    printf("threads updates   before    after\n");
    for (unsigned threads = 1; threads <= example_cpus(); threads *= 2) {
        for (unsigned u = 0; u < sizeof updates / sizeof *updates; u++) {
            double before[EXAMPLE_REPEATS], after[EXAMPLE_REPEATS];

            for (unsigned i = 0; i < EXAMPLE_REPEATS; i++) { /* in turns */
                before[i] =
                    example_storm(&example_before, threads, updates[u], milliseconds, &wrong);
                after[i] = example_storm(&example_after, threads, updates[u], milliseconds, &wrong);
            }
            qsort(before, EXAMPLE_REPEATS, sizeof *before, example_compare);
            qsort(after, EXAMPLE_REPEATS, sizeof *after, example_compare);
            printf("%7u %5u %% %8.1f %8.1f\n", threads, updates[u] / 10,
                   before[EXAMPLE_REPEATS / 2], after[EXAMPLE_REPEATS / 2]);
        }
    }
    MUST(wrong == 0);
    MUST(prudence_stats(&stats) == 0);
    printf("deferred at most: %.0f KB\n", (double)stats.bytes_latent_peak / 1024);
}

/*
 * Returns the fault, or NULL. The steps run on one CPU, where a freed object is handed out again
 * next. With the mistake, the threads do not start, because they could crash.
 */
static inline const char *example_check(void)
{
    const char *failure;
    cpu_set_t here, all;
    uint64_t wrong = 0;

    MUST(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&here);
    CPU_SET((unsigned)sched_getcpu(), &here);
    MUST(sched_setaffinity(0, sizeof here, &here) == 0);
    failure = check();
    MUST(sched_setaffinity(0, sizeof all, &all) == 0);
    if (!failure && !mistake) {
        const unsigned threads = example_cpus() + 1; /* makes some lose their CPU in the middle */

        example_storm(&example_before, threads, 100, 20, &wrong);
        example_storm(&example_after, threads, 100, 20, &wrong);
    }
    return wrong ? "a thread found a state that must not exist" : failure;
}

int main(int argc, char **argv)
{
    const bool measure = argc > 1 && argc < 4 && !strcmp(argv[1], "--measure");
    const unsigned long milliseconds = argc == 3 ? strtoul(argv[2], NULL, 10) : 100;
    const char *failure;

    mistake = argc == 2 && !strcmp(argv[1], "--mistake");
    if (argc > 1 && !mistake && (!measure || milliseconds == 0 || milliseconds > 10000)) {
        fprintf(stderr, "usage: %s [--mistake | --measure [MILLISECONDS, up to 10000]]\n", argv[0]);
        return 2;
    }
    set_up();
    if (measure) {
        example_measure((unsigned)milliseconds);
        return 0;
    }
    failure = example_check();
    printf("%s: %s%s\n", program_invocation_short_name, failure ? "WRONG: " : "right",
           failure ? failure : "");
    return failure ? 1 : 0;
}

#endif /* EXAMPLE_H */
