/* SPDX-License-Identifier: MIT */
/*
 * Fork visits the parts of the process's state, in the order of their locks (fork_part.h). The
 * table below has the parts of the core; others have theirs in tables and sets (fork_part.h).
 *
 * prepare takes every lock, from the first part to the last, and waits for work that is half done,
 * so the child finds every structure whole. In the child, the forking thread first forgets, part by
 * part, the state of threads that the child does not have (child). Then parent and child release
 * the locks, from the last part to the first (done). Last, each part may do more work with no lock
 * held: in the parent by resume, in the child by revive, which also makes the library's threads.
 * docs/reference/fork-words.csv has every writable word of the library with its fate;
 * tools/check/fork finds words that it does not have.
 *
 * A thread that allocates during a fork waits. So once prepare has begun, fork must not wait for
 * anything whose holder may allocate. Therefore the first parts are the locks that libc takes after
 * our handler.
 *
 * A signal handler that interrupted this thread inside the library may fork. The thread cannot
 * release its locks before the handler returns, so fork then takes nothing, and the child only
 * mends words that are safe to mend in any state (`whole` is false). This is enough if there are no
 * other threads, or if the child only executes another program or ends. A thread that holds
 * something (bytes asked for, objects between a CPU's caches and a node) counts as being in the
 * library. So counts of such holdings belong to other threads, and the child clears them.
 *
 * A fork handler that was registered before ours runs while the locks are held, and may fork. The
 * child of that fork forgets other threads at once, because it may read, wait or end before the
 * outer fork is over. It does so with the locks held, like any other child. The outer fork, which
 * the child ends as a parent, then releases them, and revives what the child lacks. If a signal
 * handler that interrupted the library in the fork handler forks, a part may be half done; so the
 * child forgets other threads only at the end of the outer fork.
 *
 * os/posix/copy.c notices a child that was made without the handlers (_Fork, clone), which is
 * mended as after a fork that took nothing, and one in which a handler of the program uses the
 * library before ours has run.
 */
#define _GNU_SOURCE /* gettid */
#include <pthread.h>
#include <unistd.h>

#include "gp/user/process_life.h"
#include "heap/background.h"
#include "heap/heap.h"
#include "heap/nested.h"
#include "loaded.h"
#include "pages/pages.h"
#include "posix.h"
#include "process/fork.h"
#include "process/options.h"
#include "slab/preflush.h"
#include "slab/start.h"

/* ------------------------------------------------------------- libc's list of fork handlers */

/* A pthread mutex and not an os_lock, because the holder allocates and may wait for a grace
 * period. */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

/* Number of forks under way in this thread; more than one if a handler forks. */
static __thread unsigned forks_under_way;

__thread unsigned fork_registrations;

void fork_registration_begin(void)
{
    if (fork_registrations++ == 0 && !os_lock_forking)
        pthread_mutex_lock(&registering);
}

void fork_registration_end(void)
{
    if (fork_registrations == 1 && !os_lock_forking)
        pthread_mutex_unlock(&registering);
    fork_registrations--;
}

static void registering_take(void)
{
    pthread_mutex_lock(&registering);
}

static void registering_release(void)
{
    pthread_mutex_unlock(&registering);
}

/* -------------------------------------------------------------------------------- other parts */

static void heap_take(void)
{
    os_lock_take_for_fork(&heap_lock);
}

static void heap_release(void)
{
    os_lock_release_from_fork(&heap_lock);
}

static void system_child(bool whole)
{
    os_lock_fork_child();
    posix_membarrier_fork_child();
    posix_bias_fork_child(whole);
    posix_idle_fork_child();
    posix_last_threads_fork_child();
    posix_pressure_fork_child();
    posix_trace_fork_child();
    posix_thread_trace_fork_child();
    loaded_fork_child();
    os_later_fork_child();
    background_fork_child();
}

/* Lets fork handlers of the program, which may run on this thread from here on, use the whole
 * library. */
static void let_through(void)
{
    os_lock_forking = true;
    os_busy_of_fork = os_busy - os_hands;
}

static void let_nobody_through(void)
{
    os_lock_forking = false;
    os_busy_of_fork = 0;
}

static const struct fork_part core[] = {
    {.order = FORK_HANDLERS,
     .name = "fork handlers",
     .prepare = registering_take,
     .done = registering_release},
    {.order = FORK_OPTIONS,
     .name = "options",
     .prepare = options_fork_prepare,
     .done = options_fork_done},
    {.order = FORK_STREAMS,
     .name = "streams",
     .prepare = posix_streams_fork_prepare,
     .child = posix_streams_fork_child,
     .done = posix_streams_fork_done},
    {.order = FORK_SYSTEM, .name = "system", .child = system_child},
    {.order = FORK_HEAP, .name = "heap", .prepare = heap_take, .done = heap_release},
    {.order = FORK_READERS,
     .name = "readers",
     .prepare = gp_fork_prepare,
     .child = gp_fork_child,
     .done = gp_fork_done},
    {.order = FORK_CACHES,
     .name = "caches",
     .prepare = slab_fork_prepare,
     .child = slab_fork_child,
     .done = slab_fork_done,
     .revive = preflush_start_helper},
    {.order = FORK_NESTED,
     .name = "side area",
     .prepare = nested_fork_prepare,
     .done = nested_fork_done},
    {.order = FORK_PAGES,
     .name = "pages",
     .prepare = pages_fork_prepare,
     .child = pages_fork_child,
     .done = pages_fork_done},
    {.order = FORK_FORKER,
     .name = "the forking thread",
     .prepare = let_through,
     .done = let_nobody_through},
};

const struct fork_part *fork_parts[FORK_PARTS];

static void fork_part_put(const struct fork_part *part)
{
    if (fork_parts[part->order])
        os_panic("two parts of fork, '%s' and '%s', have one place in the order of locks",
                 fork_parts[part->order]->name, part->name);
    fork_parts[part->order] = part;
}

static void fork_parts_gather(void)
{
    const struct fork_part *const *at;

    for (unsigned i = 0; i < sizeof core / sizeof core[0]; i++)
        fork_part_put(&core[i]);
    for (unsigned i = 0; other_fork_parts[i]; i++)
        fork_part_put(other_fork_parts[i]);
    for_each_entered(at, fork_parts)
    {
        fork_part_put(*at);
    }
}

/* ------------------------------------------------------------------------------- the handlers */

static __thread bool interrupted;

/* The outermost fork releases its locks, or mends the child. */
static __thread bool ending;

/* Whether this process was made before the outermost fork of this thread, or by that fork or one
 * nested in it, and is mended. Mended once, because a fork handler may make threads that read. */
static __thread enum { BEFORE_FORK, BY_FORK, MENDED } made;

/* Visit the parts that have the function. */
#define CALL_EACH(function, arguments)                                                             \
    do {                                                                                           \
        for (unsigned i_ = 0; i_ < FORK_PARTS; i_++)                                               \
            if (fork_parts[i_] && fork_parts[i_]->function)                                        \
                fork_parts[i_]->function arguments;                                                \
    } while (0)

static void fork_prepare_parts(void)
{
    if (forks_under_way == 0)
        os_copy_check(); /* not of this fork */
    if (forks_under_way++)
        return;
    interrupted = os_busy > 0 || fork_registrations > 0;
    if (!interrupted)
        CALL_EACH(prepare, ());
}

static void fork_release_parts(void)
{
    for (unsigned i = FORK_PARTS; i-- > 0;)
        if (fork_parts[i] && fork_parts[i]->done)
            fork_parts[i]->done();
}

static void mend(bool whole)
{
    CALL_EACH(child, (whole));
}

/* Once more for the child of a signal handler that has forked in that time. */
static void mend_if_new(bool whole)
{
    while (made == BY_FORK) {
        made = MENDED;
        compiler_barrier(); /* before the handler's child changes it */
        mend(whole);
    }
}

/* Ends the outermost fork of this thread. Until the locks are released, the fork of a signal
 * handler is nested in it, and takes nothing. If that was in the midst of the release, its child is
 * mended like one whose parent was interrupted in the library. */
static void fork_ends(void)
{
    const bool whole = !interrupted; /* the fork of a handler may change that at the end */
    bool is_new;

    ending = true;
    compiler_barrier();
    mend_if_new(whole);
    if (whole)
        fork_release_parts();
    ending = false;
    forks_under_way = 0;
    compiler_barrier();
    mend_if_new(false);
    is_new = made != BEFORE_FORK;
    made = BEFORE_FORK;
    if (!whole)
        return;
    if (is_new)
        CALL_EACH(revive, ());
    else
        CALL_EACH(resume, ());
}

static void fork_returns(void)
{
    if (forks_under_way == 1)
        fork_ends();
    else
        forks_under_way--;
}

/* Returns whether a child may be mended before its outermost fork ends: if the fork has taken
 * nothing, or has taken all locks and this thread holds nothing else, and so is outside of the
 * library. */
static bool may_mend_early(void)
{
    return !ending && (interrupted || (os_lock_forking && os_busy == os_busy_of_fork));
}

static void mend_early(void)
{
    mend(!interrupted);
    made = MENDED;
}

/* A process in which mend_early() has run is not new here, when the fork in which it was nested
 * comes to its handler. */
static void child(void)
{
    if (posix_copy_known())
        made = BY_FORK;
    fork_returns();
    if (made == BY_FORK && may_mend_early())
        mend_early();
}

/* Returns whether this thread has made the copy. With few calls the system is not asked, and a
 * thread that has never taken a lock of the library counts as made in the copy. */
static bool is_first_thread(void)
{
    return os_calls_are_few() ? posix_thread_is_of_original() : gettid() == getpid();
}

/* Mends a child at the first use that needs this. Fork comes here if a handler of the program runs
 * before ours, or calls _Fork. Any other child was made without handlers, and is mended as after a
 * fork that took nothing; the library's threads are made when they are wanted. */
static void notice_copy(void)
{
    if (!is_first_thread())
        return;
    if (!forks_under_way) {
        if (posix_copy_report()) {
            mend(false);
            posix_copy_known();
        }
    } else if (may_mend_early() && posix_copy_known()) {
        mend_early();
    }
}

void fork_start(void)
{
    int error;

    fork_parts_gather();
    posix_copy_start(notice_copy);
    error = pthread_atfork(fork_prepare_parts, fork_returns, child);
    if (error)
        os_report(
            "fork handlers cannot be registered (error %d): each child counts as made by _Fork",
            error);
}
