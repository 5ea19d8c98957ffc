/* SPDX-License-Identifier: MIT */
/*
 * Four threads that wander over 192 CPUs, as in a container with a quota, need little more memory
 * than on 4 CPUs (docs/explanation/scaling.md). One thread plays the four, and the test controls
 * the clock and grace periods. Each run is a process of its own.
 *
 * ctest: not-with thread (one thread)
 */
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "posix.h"
#include "slab/reclaim/decay.h"
#include "slab/start.h"
#include "support/pages.h"

#define THREADS      4
#define LIVE         500  /* objects of each size and thread */
#define STAY         1000 /* pairs between two moves of a thread */
#define MOVES        100  /* of each thread, before and while memory is measured */
#define TURN         20   /* pairs that a thread does before the next one goes on */
#define GRACE_PERIOD 200  /* pairs of a thread */
#define BURST        300  /* objects that are allocated and freed at once now and then */

static const size_t sizes[] = {64, 256, 1024};
#define SIZES (sizeof sizes / sizeof *sizes)

struct run {
    unsigned cpus, nodes;
    uint64_t pair_ns; /* time from a pair of a thread to the next */
    uint64_t mean, peak, metadata, cached, refills, past, drains; /* results; sizes in bytes */
};

static struct prudence_cache *caches[SIZES];
static unsigned where[THREADS];
static void *live[THREADS][SIZES][LIVE];
static uint32_t seed = 1;

/* Also serves the library. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    time->tv_sec = (time_t)(now / 1000000000);
    time->tv_nsec = (long)(now % 1000000000);
    return 0;
}

static unsigned draw(unsigned below)
{
    seed = seed * 1664525 + 1013904223;
    return (unsigned)(((uint64_t)seed * below) >> 32);
}

static bool is_taken(unsigned cpu)
{
    for (unsigned thread = 0; thread < THREADS; thread++)
        if (where[thread] == cpu)
            return true;
    return false;
}

static void move(unsigned thread, unsigned cpus)
{
    unsigned cpu;

    if (cpus == THREADS)
        return;
    do
        cpu = draw(cpus);
    while (is_taken(cpu));
    where[thread] = cpu;
}

static void burst(void)
{
    struct prudence_cache *cache = caches[draw(SIZES)];
    void *objects[BURST];

    allocate_all(cache, objects, BURST);
    free_all(cache, objects, BURST);
}

static void turn(unsigned thread)
{
    injected_cpu = where[thread];
    for (unsigned pair = 0; pair < TURN; pair++) {
        unsigned size = draw(SIZES);
        void **object = &live[thread][size][draw(LIVE)], *old = *object;

        *object = prudence_cache_alloc(caches[size]);
        assert_non_null(*object);
        if (old)
            prudence_cache_free_deferred(caches[size], old);
    }
    if (!draw(GRACE_PERIOD / 4))
        burst();
}

static uint64_t resident(void)
{
    return pages().used + pages().retained + pages().metadata;
}

static void play(struct run *run, struct prudence_domain *domain, bool measures)
{
    unsigned turns = MOVES * STAY / TURN;
    uint64_t sum = 0;

    for (unsigned i = 0; i < turns; i++) {
        for (unsigned thread = 0; thread < THREADS; thread++) {
            if ((i + thread * STAY / TURN / THREADS) % (STAY / TURN) == 0)
                move(thread, run->cpus);
            turn(thread);
        }
        now += TURN * run->pair_ns;
        if (i % (GRACE_PERIOD / TURN) == 0)
            prudence_manual_advance(domain);
        if (!measures)
            continue;
        sum += resident();
        run->peak = max_size(run->peak, resident());
    }
    run->mean = sum / turns;
}

static unsigned current(void)
{
    return injected_cpu;
}

static void measure(struct run *run)
{
    struct prudence_domain *domain;

    posix_topology_inject(run->cpus, run->nodes, current);
    assert_true(slab_start());
    posix_threads_injected = THREADS;
    posix_clock_injected = our_clock;
    decay_enabled = true;
    os_pages_set_retain(0);
    domain = manual_domain();
    for (unsigned size = 0; size < SIZES; size++)
        caches[size] = fixed_cache(sizes[size], 0, domain);
    for (unsigned thread = 0; thread < THREADS; thread++)
        where[thread] = thread;
    play(run, domain, false);
    play(run, domain, true);
    run->metadata = pages().metadata;
    for (unsigned size = 0; size < SIZES; size++) {
        struct prudence_cache_stats stats = stats_of(caches[size]);

        run->cached += stats.bytes_cached + stats.bytes_latent;
        run->refills += stats.refills;
        run->past += stats.busy_bypasses;
        run->drains += stats.remote_drains;
        check_books(caches[size]);
    }
}

static struct run run_alone(unsigned cpus, unsigned nodes, uint64_t pair_ns)
{
    struct run *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct run run;
    int status;
    pid_t child;

    assert_true(shared != MAP_FAILED);
    *shared = (struct run){.cpus = cpus, .nodes = nodes, .pair_ns = pair_ns};
    child = fork();
    if (!child) {
        measure(shared);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run = *shared;
    munmap(shared, sizeof *shared);
    print_message("%u CPUs, %u nodes, stay %" PRIu64 " us: mean %" PRIu64 " KB, peak %" PRIu64
                  ", metadata %" PRIu64 ", cached %" PRIu64 ", refills %" PRIu64
                  ", past caches %" PRIu64 ", drains %" PRIu64 "\n",
                  cpus, nodes, STAY * pair_ns / 1000, run.mean >> 10, run.peak >> 10,
                  run.metadata >> 10, run.cached >> 10, run.refills, run.past, run.drains);
    return run;
}

/* Compares with a machine of 4 CPUs. At most a fifth more. */
static void follows(unsigned nodes, uint64_t pair_ns)
{
    struct run few = run_alone(THREADS, nodes, pair_ns), many = run_alone(192, nodes, pair_ns);

    assert_true(5 * many.mean <= 6 * few.mean);
    assert_true(5 * many.peak <= 6 * few.peak);
}

TEST(memory_follows_threads_that_stay_for_a_millisecond)
{
    follows(1, 1000);
    follows(4, 1000);
}

TEST(memory_follows_threads_that_stay_for_100_milliseconds)
{
    follows(1, 100000);
    follows(4, 100000);
}

SUITE()
