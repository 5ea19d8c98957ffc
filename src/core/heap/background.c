/* SPDX-License-Identifier: MIT */
/*
 * Drains and purges the memory that an idle process keeps, by a thread that exists only until that
 * is done (ADR 42).
 *
 * As long as threads of the program take slow paths, they do the work of decay themselves
 * (slab/reclaim/decay.c). After the last call no thread does. So a thread that finds more than
 * START_BYTES kept beyond the option retain starts the decay thread. That checks every half `decay`
 * (at least PAUSE_MIN_NS), and less often while the checks are fruitless. It ends when no more than
 * DONE_BYTES beyond retain are kept, or when nothing more can go.
 *
 * A process whose only thread is the caller gets no decay thread, because unshare and setns of a
 * user namespace would fail with a second one. Decay then goes on during calls of the program. The
 * C library knows at no cost whether there was never another thread. Once there was one, or in a
 * child of such a process, we ask the system, at most each ALONE_NS, and only when a thread would
 * be started.
 *
 * A process that keeps to few system calls (syscall_policy.h) gets no decay thread either.
 *
 * The thread is started at the end of a slow path, with no lock and no CPU's caches held. It is not
 * started by a signal handler that interrupted the library, between the handlers of a fork, before
 * the library's late constructor or after the destructor. pthread_create takes the lock on glibc's
 * list of stacks, which glibc holds while it frees a thread's storage. So in a threaded process a
 * call of `free` that may come from there (by the return address), and all calls within that one,
 * leave the start to the next slow path.
 *
 * There are no locks. `background_state` belongs to the decay thread from the compare-and-swap that
 * announces the thread until the thread's last store.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "gp/gp.h"
#include "heap/background.h"
#include "heap/heap.h"
#include "race_detector.h"
#include "slab/node.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/limit.h"

/* Policy: when does a thread give memory back? */
#define STACK       ((size_t)256 << 10)   /* bytes; of the thread's stack */
#define START_BYTES ((uint64_t)1 << 20)   /* bytes; kept beyond retain before a thread starts */
#define DONE_BYTES  ((uint64_t)512 << 10) /* bytes; kept and untouched: the thread ends */

#define PAUSE_MIN_NS UINT64_C(10000000)    /* ns; least time between checks */
#define PAUSE_MAX_NS UINT64_C(1000000000)  /* ns; the same, after fruitless ones */
#define RETRY_NS     UINT64_C(1000000000)  /* ns; after the system refused a thread */
#define ALONE_NS     UINT64_C(10000000)    /* ns; after the system counted one thread */
#define GIVEN_UP_NS  UINT64_C(60000000000) /* ns; after a thread gained nothing */

/* The thread ends after more than this number of consecutive checks in which nothing went and no
 * other thread worked for decay, unless a reader delays START_BYTES or more. */
#define FRUITLESS_MAX 20   /* rounds; more fruitless checks in a row end the thread */
#define LOOK_CACHES   1024 /* caches; most in one check */
#define LOOK_MOVES    4096 /* moves; most in one check */

enum { NOBODY, THERE };
enum { NOT_LOADED, BEING_READIED, READY, ENDED }; /* values of `life` */
static uint32_t background_state;
static uint32_t life;
static bool background_wanted = true; /* the option background */
static bool forked;       /* a forked child under a race detector may not start threads */
static uint64_t retry_at; /* no thread is started before this time (ns); atomic */

/* State of the decay thread. */
static uint64_t kept_before, rounds_before;
static unsigned fruitless;

static uint64_t background_kept(void)
{
    return os_pages_kept() + decay_kept();
}

/* ------------------------------------------------------------------------------- what it does */

/* Returns the pause until the next check, which grows while checks are fruitless. */
static uint64_t pause_ns(void)
{
    uint64_t pause = load_relaxed(&slab_decay) / 2;

    return clamp_size(pause << (fruitless / 4), PAUSE_MIN_NS, max_size(pause, PAUSE_MAX_NS));
}

uint64_t background_look(void)
{
    uint64_t now_kept, rounds = decay_rounds(), retain = os_pages_retain();
    bool alone = rounds == rounds_before;

    if (!load_relaxed(&background_wanted) || load_relaxed(&life) != READY)
        return 0;
    decay_some(LOOK_CACHES, LOOK_MOVES);
    decay_drive();
    os_pages_decay();
    rounds_before = decay_rounds();
    now_kept = background_kept();
    if (now_kept <= retain + DONE_BYTES)
        return 0;
    fruitless = alone && now_kept >= kept_before ? fruitless + 1 : 0;
    kept_before = now_kept;
    if (fruitless > FRUITLESS_MAX && limit_used() < START_BYTES) {
        store_relaxed(&retry_at, os_clock_coarse_ns() + GIVEN_UP_NS);
        return 0;
    }
    return pause_ns();
}

static bool background_is_worth_it(void)
{
    return background_kept() > os_pages_retain() + START_BYTES;
}

static bool may_retry(void)
{
    uint64_t then = load_relaxed(&retry_at);

    return likely(!then) || os_clock_coarse_ns() >= then;
}

static void background_begin(void)
{
    fruitless = 0;
    kept_before = ~UINT64_C(0);
    rounds_before = decay_rounds();
}

/* Announces the end of the thread, then checks once more. A thread that still found this one there
 * has made the kept bytes visible before, so the last check sees them. */
static void decay_until_done(void *unused)
{
    uint32_t nobody;

    (void)unused;
    do {
        uint64_t pause;

        background_begin();
        while ((pause = background_look())) {
            os_thread_waits(true);
            os_sleep_ns(pause);
            os_thread_waits(false);
        }
        store_release(&background_state, (uint32_t)NOBODY);
        os_full_fence();
        nobody = NOBODY;
    } while (load_relaxed(&background_wanted) && load_relaxed(&life) == READY &&
             background_is_worth_it() && may_retry() &&
             compare_exchange(&background_state, &nobody, (uint32_t)THERE));
}

/* ----------------------------------------------------------------------------- where it is made */

#define RANGES_MAX 8 /* ranges; of code of the C library, the loader and this library */

static struct {
    uintptr_t start, end;
} ranges[RANGES_MAX];
static unsigned range_count;

static bool is_theirs(const struct dl_phdr_info *module)
{
    const char *name = module->dlpi_name, *slash = name ? strrchr(name, '/') : NULL;

    name = slash ? slash + 1 : name;
    return name && (strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
                    strncmp(name, "ld-", 3) == 0 || strncmp(name, "ld.", 3) == 0 ||
                    strncmp(name, "libpthread", 10) == 0);
}

COLD static int note_module(struct dl_phdr_info *module, size_t size, void *ours)
{
    bool theirs = is_theirs(module);

    (void)size;
    for (unsigned i = 0; i < module->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        uintptr_t start = module->dlpi_addr + part->p_vaddr, end = start + part->p_memsz;

        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) ||
            (!theirs && ((uintptr_t)ours < start || (uintptr_t)ours >= end)))
            continue;
        ranges[range_count].start = start;
        ranges[range_count++].end = end;
    }
    return 0;
}

/* Returns whether the caller is the only thread of the process, or false if the system does not
 * report. Does not count threads that clone() made while the C library has made none. */
static bool is_alone(void)
{
    if (os_is_single_threaded())
        return true;
    if (os_thread_count() != 1)
        return false;
    store_relaxed(&retry_at, os_clock_coarse_ns() + ALONE_NS);
    return true;
}

/* Returns whether the C library may hold a lock that pthread_create takes. */
static bool is_inside_libc(const void *caller)
{
    if (!caller || !process_is_malloc)
        return false;
    for (unsigned i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ranges[i].start && (uintptr_t)caller < ranges[i].end)
            return true;
    return false;
}

static __attribute__((noinline)) void background_make_thread(const void *caller)
{
    uint32_t nobody = NOBODY;

    if (os_calls_are_few() || load_relaxed(&life) != READY || os_busy || os_lock_forking ||
        forked || is_inside_libc(caller) || !may_retry() || is_alone() ||
        !compare_exchange(&background_state, &nobody, (uint32_t)THERE))
        return;
    if (os_thread_start("prudence-tidy", -1, STACK, decay_until_done, NULL))
        return;
    store_relaxed(&retry_at, os_clock_coarse_ns() + RETRY_NS);
    store_release(&background_state, (uint32_t)NOBODY);
}

void background_visit(const void *caller)
{
    if (!load_relaxed(&background_wanted) || !background_is_worth_it())
        return;
    /* Makes the kept bytes visible before the read of `background_state`. So either this thread
     * finds that the decay thread has ended, or that thread sees the bytes (decay_until_done). */
    os_full_fence();
    if (load_relaxed(&background_state) == NOBODY)
        background_make_thread(caller);
}

/* --------------------------------------------------------------------------------- process life */

void background_set(bool want)
{
    store_relaxed(&background_wanted, want);
}

COLD void background_start(void)
{
    uint32_t seen = NOT_LOADED;

    if (!compare_exchange(&life, &seen, (uint32_t)BEING_READIED))
        return;
    if (process_is_malloc)
        dl_iterate_phdr(note_module, (void *)(uintptr_t)background_start);
    seen = BEING_READIED;
    compare_exchange(&life, &seen, (uint32_t)READY);
}

void background_end(void)
{
    store_relaxed(&life, (uint32_t)ENDED);
}

/* The decay thread does not exist in the child. A race detector's runtime ends a child of a
 * threaded process that starts threads. */
void background_fork_child(void)
{
    background_state = NOBODY;
    forked = race_detector_on;
    if (life == BEING_READIED) { /* that thread does not exist in the child */
        range_count = 0;
        life = NOT_LOADED;
    }
}
