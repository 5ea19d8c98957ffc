/* SPDX-License-Identifier: MIT */
/*
 * Parts common to the torture programs: variants (one process each, because most options are read
 * at start), the clock, random numbers, violations, and marks that show the object's
 * history later.
 *
 * ThreadSanitizer sees neither rseq nor membarrier nor plain fences. Therefore that build takes
 * per-CPU caches by compare-and-swap and forces fenced readers, and does not cover the restartable
 * sequences, remote takes by membarrier, fence-free readers and the switch between modes.
 */
#ifndef TESTS_SUPPORT_GP_TORTURE_H
#define TESTS_SUPPORT_GP_TORTURE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "posix.h"
#include "support/gp_tsan.h"
#include "support/self.h"
#include "support/test_seed.h"
#include "support/thread_traces.h"
#include "support/torture_seconds.h"

#define TORTURE_UNUSED __attribute__((unused))

#if defined(__SANITIZE_THREAD__)
#define TORTURE_TSAN 1
#else
#define TORTURE_TSAN 0
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TORTURE_ASAN 1
#else
#define TORTURE_ASAN 0
#endif
/* Whether a child of a threaded process may make threads. The sanitizers' runtimes do not support
 * this: the child may find AddressSanitizer's allocator locked. */
#define TORTURE_CHILD_THREADS (!TORTURE_ASAN && !TORTURE_TSAN)

/* ------------------------------------------------------------------------ clock and chance */

static uint64_t torture_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

TORTURE_UNUSED static void torture_sleep_us(unsigned microseconds)
{
    struct timespec huge = {.tv_sec = microseconds / 1000000,
                            .tv_nsec = (long)(microseconds % 1000000) * 1000};

    nanosleep(&huge, NULL);
}

/* Waits until the count is no longer 0, for a minute at most, because threads may get no CPU for
 * long. */
TORTURE_UNUSED static void torture_wait_for(const uint64_t *count)
{
    for (unsigned i = 0; i < 6000 && !__atomic_load_n(count, __ATOMIC_RELAXED); i++)
        torture_sleep_us(10000);
}

/* Read before main(), because signal handlers make random choices, too. */
static uint64_t torture_choices;

__attribute__((constructor)) static void torture_read_seed(void)
{
    torture_choices = test_seed(0);
}

/* Implements xorshift64*; `state` must not be 0. The seed changes the output of a state, so threads
 * need not know the seed. */
TORTURE_UNUSED static uint64_t torture_random(uint64_t *state)
{
    uint64_t mixed;

    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    mixed = (*state + torture_choices) * UINT64_C(2685821657736338717);
    return (mixed ^ mixed >> 32) * UINT64_C(2685821657736338717);
}

TORTURE_UNUSED static unsigned torture_below(uint64_t *state, unsigned bound)
{
    return (unsigned)((torture_random(state) >> 33) % bound);
}

/* Many threads raise one value, which stays the largest that any of them gave. */
TORTURE_UNUSED static void torture_raise(uint64_t *most, uint64_t value)
{
    uint64_t now = __atomic_load_n(most, __ATOMIC_RELAXED);

    while (now < value && !__atomic_compare_exchange_n(most, &now, value, false, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

/* Pins the calling thread to a random CPU, to force a migration. Does nothing if the thread may not
 * run there. */
TORTURE_UNUSED static void torture_migrate(uint64_t *state)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(torture_below(state, (unsigned)sysconf(_SC_NPROCESSORS_ONLN)), &one);
    sched_setaffinity(0, sizeof one, &one);
}

TORTURE_UNUSED static void torture_roam(void)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
}

/* ------------------------------------------------------------------------------- violations */

static uint64_t torture_violations;
static int torture_stop_word;

/* Returns whether the threads must stop because the time is over. */
TORTURE_UNUSED static bool torture_stopped(void)
{
    return __atomic_load_n(&torture_stop_word, __ATOMIC_RELAXED) != 0;
}

TORTURE_UNUSED static void torture_stop(void)
{
    __atomic_store_n(&torture_stop_word, 1, __ATOMIC_RELAXED);
}

/* Counts a violation and reports the first twenty. */
TORTURE_UNUSED __attribute__((format(printf, 1, 2))) static void
torture_violation(const char *format, ...)
{
    va_list arguments;
    char line[400];
    int length;

    if (__atomic_fetch_add(&torture_violations, 1, __ATOMIC_RELAXED) >= 20)
        return;
    va_start(arguments, format);
    length = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (length > 0 && write(STDERR_FILENO, "VIOLATION: ", 11) == 11) {
        length = length < (int)sizeof line - 2 ? length : (int)sizeof line - 2;
        line[length++] = '\n';
        if (write(STDERR_FILENO, line, (size_t)length) < 0)
            return;
    }
}

#define TORTURE_CHECK(condition)                                                                   \
    do {                                                                                           \
        if (!(condition))                                                                          \
            torture_violation("%s:%d: %s", __FILE__, __LINE__, #condition);                        \
    } while (0)

TORTURE_UNUSED static pthread_t torture_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, argument)) {
        perror("pthread_create");
        exit(2);
    }
    return thread;
}

/* The threads of the run. */
static struct {
    pthread_t threads[64];
    unsigned count;
} torture_crew;

/* Starts `count` threads, which get the numbers from `first` on. */
TORTURE_UNUSED static void torture_start(void *(*run)(void *number), unsigned count,
                                         uintptr_t first)
{
    for (uintptr_t i = 0; i < count; i++)
        torture_crew.threads[torture_crew.count++] = torture_thread(run, (void *)(first + i));
}

/* Notifies the threads that the time is over, and waits for them. */
TORTURE_UNUSED static void torture_join(void)
{
    torture_stop();
    while (torture_crew.count)
        pthread_join(torture_crew.threads[--torture_crew.count], NULL);
}

/* Lets the threads run for this time. */
TORTURE_UNUSED static void torture_run(double seconds)
{
    torture_sleep_us((unsigned)(seconds * 1e6));
    torture_join();
}

/* Pretends that every CPU is idle. No CPU idles during a torture, but the helper must still run. */
static bool torture_is_idle(unsigned cpu)
{
    (void)cpu;
    return true;
}

TORTURE_UNUSED static void torture_pretend_idle(void)
{
    posix_idle_inject(torture_is_idle);
}

/* ------------------------------------------------------------------------------------ marks */

/*
 * The start of an object that records its state, readable even after the object was freed. `seal`
 * binds the other words to this address, so that foreign bytes are recognized.
 */
struct torture_mark {
    uint64_t birth;  /* unique */
    uint64_t state;  /* enum torture_state, atomic */
    uint64_t cookie; /* of a grace period that began after the unlink; atomic */
    uint64_t seal;   /* atomic */
};

enum torture_state { TORTURE_NEW = 0x6e65, TORTURE_LIVE = 0x6c69, TORTURE_RETIRED = 0x7265 };

static inline uint64_t torture_seal(const struct torture_mark *mark, uint64_t state,
                                    uint64_t cookie)
{
    uint64_t hash = (uint64_t)(uintptr_t)mark ^ mark->birth * UINT64_C(0x9e3779b97f4a7c15);

    hash ^= (cookie + state) * UINT64_C(0xc2b2ae3d27d4eb4f);
    return hash * UINT64_C(2685821657736338717) | 1;
}

static inline void torture_mark_set(struct torture_mark *mark, uint64_t state, uint64_t cookie)
{
    __atomic_store_n(&mark->cookie, cookie, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->state, state, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->seal, torture_seal(mark, state, cookie), __ATOMIC_RELAXED);
}

/*
 * Checks an object that was just handed out: the grace period of a deferred object must be over.
 * Returns whether the mark was valid.
 */
TORTURE_UNUSED static bool torture_check_reuse(const struct torture_mark *mark,
                                               const struct prudence_domain *domain)
{
    if (mark->seal != torture_seal(mark, mark->state, mark->cookie))
        return false;
    if (mark->state == TORTURE_LIVE)
        torture_violation("object %p was handed out while live", (const void *)mark);
    if (mark->state == TORTURE_RETIRED && !gp_poll(domain, (gp_cookie){mark->cookie}))
        torture_violation(
            "object %p was handed out before its grace period: cookie %llx, "
            "completed %llx",
            (const void *)mark, (unsigned long long)mark->cookie,
            (unsigned long long)load_acquire(&domain->progress.completed));
    return true;
}

/* --------------------------------------------------------------------------------- variants */

struct torture_variant {
    const char *name;
    const char *options; /* PRUDENCE_OPTIONS */
};

/* A torture that combines many subjects runs TORTURE_TIMES as long as one. */
#ifndef TORTURE_TIMES
#define TORTURE_TIMES 1
#endif

/* Returns how many bytes of freed large blocks may rest, closed: with guard_large (also part of
 * hardened) REST_BYTES of guard/large_guard.c. A soak sets such options by chance. */
static uint64_t torture_resting_most(void)
{
    const char *options = getenv("PRUDENCE_OPTIONS");
    bool rest = options && (strstr(options, "hardened=1") || strstr(options, "guard_large=1"));

    return rest ? UINT64_C(64) << 20 : 0;
}

/* Shows whether slabs, large blocks or their pages remain. */
static bool torture_something_is_left(struct prudence_stats *stats)
{
    prudence_stats(stats);
    return stats->slabs_now || stats->slab_bytes > torture_resting_most() || stats->retained_bytes;
}

/*
 * Merges all latent objects and gives everything back after all threads have ended and freed or
 * deferred their objects; then nothing may remain. Takes three rounds: close; merge, and close
 * `next`; merge. The library's own threads may still hold slabs they took earlier, so this waits
 * for them, a minute at most. A leaked slab stays longer than that. Leaves the statistics in
 * `stats` for further checks.
 */
TORTURE_UNUSED static void torture_expect_nothing_left(struct prudence_stats *stats)
{
    for (unsigned round = 0; round < 3; round++) {
        prudence_trim();
        prudence_synchronize();
    }
    prudence_trim();
    for (unsigned i = 0; i < 6000 && torture_something_is_left(stats); i++) {
        torture_sleep_us(10000);
        prudence_trim();
    }
    TORTURE_CHECK(stats->objects_live == 0);
    TORTURE_CHECK(stats->objects_latent == 0);
    TORTURE_CHECK(stats->bytes_latent == 0);
    TORTURE_CHECK(stats->slabs_now == 0);
    TORTURE_CHECK(stats->slab_bytes <= torture_resting_most());
    TORTURE_CHECK(stats->retained_bytes == 0);
}

/* A number that a program reports; the soak reads some of them by name. */
struct torture_count {
    const char *name;
    uint64_t number;
};

TORTURE_UNUSED static void torture_say(const struct torture_count *counts)
{
    printf(":");
    for (; counts->name; counts++)
        printf(" %s=%llu", counts->name, (unsigned long long)counts->number);
}

#define TORTURE_SAY(...) torture_say((const struct torture_count[]){__VA_ARGS__, {NULL, 0}})

/* Prints the counts common to all programs and returns the exit status. */
TORTURE_UNUSED static int torture_end(const char *variant)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    if (stats.stalls) /* sections stay far below the default stall_timeout of 10 s */
        torture_violation("%llu false stall reports", (unsigned long long)stats.stalls);
    printf(" | gp=%llu membarriers=%llu switches=%llu percpu=%s readers=%s: %s (%llu violations)\n",
           (unsigned long long)stats.grace_periods, (unsigned long long)stats.membarriers,
           (unsigned long long)stats.mode_switches, stats.percpu, stats.readers_mode, variant,
           (unsigned long long)torture_violations);
    fflush(stdout);
    return torture_violations ? 1 : 0;
}

/* Waits for a child. A child that hangs is a violation: reports the state of its threads, then
 * sends SIGABRT, so that the threads print their stacks, or a core dump or sanitizer shows them. */
static int torture_wait(pid_t child, double patience)
{
    uint64_t deadline = torture_now() + (uint64_t)(torture_patience(patience) * 1e9);
    int status;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (torture_now() > deadline) {
            fprintf(stderr, "VIOLATION: process %d hangs\n", (int)child);
            traces_say_threads(child);
            kill(child, SIGABRT);
            torture_sleep_us(2000000);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        torture_sleep_us(1000);
    }
    return status;
}

/*
 * Implements main() of a torture program. With an argument, runs `body` for that variant in this
 * process; otherwise starts one process for each variant, and divides the time among them.
 */
TORTURE_UNUSED static int torture_main(int argc, char **argv,
                                       const struct torture_variant *variants, unsigned count,
                                       int (*body)(const char *variant, double seconds))
{
    double seconds = TORTURE_TIMES * torture_seconds(2);
    int failed = 0;

    traces_at_abort();
    if (argc > 1)
        return body(argv[1], argc > 2 ? atof(argv[2]) : seconds);
    seconds /= count;
    for (unsigned i = 0; i < count; i++) {
        const char *inherited = getenv("PRUDENCE_OPTIONS");
        char options[1000], duration[32], name[64];
        char *arguments[] = {argv[0], name, duration, NULL};
        const char *program = strrchr(argv[0], '/');
        pid_t child;
        int status;

        /* Options of the variant come later and so override inherited ones. */
        snprintf(options, sizeof options, "%s,%s%s%s", inherited ? inherited : "",
                 variants[i].options, TORTURE_TSAN ? ",reader_mode=fenced" : "",
                 strstr(variants[i].options, "annotate") ? "" : ",annotate=0");
        snprintf(duration, sizeof duration, "%f", seconds);
        snprintf(name, sizeof name, "%s", variants[i].name);
        printf("%s", program ? program + 1 : argv[0]);
        fflush(stdout);
        child = fork();
        if (child == 0) {
            setenv("PRUDENCE_OPTIONS", options, 1);
            self_exec(arguments);
            _exit(127);
        }
        status = torture_wait(child, 150 + 20 * seconds);
        if (status != 0) {
            printf("\n%s: variant '%s' (PRUDENCE_OPTIONS=%s) FAILED with status %#x\n", argv[0],
                   variants[i].name, options, (unsigned)status);
            failed = 1;
        }
    }
    return failed;
}

/* Defines main(): TORTURE(body, {name, options} of each variant). */
#define TORTURE(body, ...)                                                                         \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct torture_variant variants[] = {__VA_ARGS__};                            \
                                                                                                   \
        return torture_main(argc, argv, variants, sizeof variants / sizeof variants[0], body);     \
    }

#endif /* TESTS_SUPPORT_GP_TORTURE_H */
