/* SPDX-License-Identifier: MIT */
/*
 * Threads that take part, block, end and fork.
 *
 * The lists of a thread that has given dates outlive the thread. They wait unchanged among the
 * orphans for the next thread that registers, on whose clocks the dates then expire, or for ticks
 * of other threads, which take them over list by list (left.c). So nothing is lost when threads
 * come and go, and there are never more orphans than threads took part at a time. A thread that
 * leaves nothing is freed at once.
 *
 * Destructors of thread-specific data may use short-term memory in any round, so a thread takes
 * part until the last round (gp/user/reader_exit.c). Later destructors may refresh; the thread is
 * then ending, and takes part only during each such call. If a thread first takes part in a
 * destructor, there may be no notice of the last round. Ticks of other threads then find by the
 * thread's number that it is gone (scm_threads_reap_ending). If it first takes part in the last
 * round, registering threads and readers of the statistics find that (scm_threads_reap).
 *
 * A thread that takes part and is not blocked has joined global time (phases.c). A joining thread
 * counts as having ticked in the present phase, so it cannot end the phase twice. An only
 * thread does not, and its tick ends the phase, because no other thread would (thesis, section
 * 4.2.2).
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "base/pace.h"
#include "fork_part.h"
#include "gp/user/reader_exit.h"
#include "shortterm/regions.h"
#include "shortterm/scm.h"
#include "toolkit/domains/phases.h"

__thread struct scm_thread *scm_self __attribute__((tls_model("initial-exec")));

/* State of this thread, also while it is blocked. */
static __thread struct scm_thread *mine __attribute__((tls_model("initial-exec")));

/* Set once an absence was reported, until this thread takes part again. */
static __thread bool absence_reported __attribute__((tls_model("initial-exec")));

/* `ending` is set from the last round of destructors on, `is_visiting` during a call that takes
 * part. */
static __thread bool ending __attribute__((tls_model("initial-exec")));
static __thread bool is_visiting __attribute__((tls_model("initial-exec")));

struct prudence_domain *scm_phases;

static unsigned active;      /* threads that have joined global time; scm_lock */
static uint64_t last_number; /* last number given to a thread; scm_lock */

#define LOOK_NS 1000000 /* between checks of threads that are ending */

/* ---------------------------------------------------------------------------------- global time */

/* Joins global time, except for an ending thread, whose dates do not need that. */
static bool global_time_join(struct scm_thread *thread)
{
    bool joined;

    is_visiting = ending;
    if (is_visiting)
        return true;
    joined = gp_phases_join(scm_phases, active > 0, &thread->phase);
    active += joined;
    return joined;
}

/* Removes a thread from global time, which may end the phase. Time stops when no thread remains. */
static void global_time_leave(void)
{
    if (--active)
        gp_phases_advance(scm_phases);
}

static void leave_myself(void)
{
    gp_phases_leave(scm_phases);
    global_time_leave();
}

/* ----------------------------------------------------------------------------- coming and going */

/* Notes that the thread's destructors have begun. Objects with its dates may be in use until the
 * last round, which may come without notice, so ticks search for the thread. */
static void note_ends(struct scm_thread *thread)
{
    if (!thread || thread->ends)
        return;
    os_lock_take(&scm_lock);
    thread->ends = true;
    scm_ending++;
    left_note();
    os_lock_release(&scm_lock);
}

/* Called in each round of destructors. A finalizer may have ended the thread, so `collecting` is
 * cleared. */
static void thread_exits(bool last)
{
    if (!last) {
        note_ends(mine);
        return;
    }
    ending = true;
    if (mine)
        mine->collecting = false;
    scm_unregister_thread();
}

static void note_id(struct scm_thread *thread)
{
    thread->id = os_thread_id();
    thread->process = os_process_id();
}

/* Prepares short-term memory for the first thread. Called under scm_lock. */
static bool scm_start(void)
{
    process_start();
    reader_exit_tell_before(thread_exits);
    if (!pages_start() || !owners_start())
        return false;
    if (!scm_phases)
        scm_phases = gp_phases_make("scm");
    return scm_phases != NULL;
}

/* Ends a thread's part. Handles end, but dates do not. Called under scm_lock. */
static void thread_ends(struct scm_thread *thread)
{
    thread->blocked = thread->collecting = false;
    scm_ending -= thread->ends;
    thread->ends = false;
    left_retire_clocks(thread);
    page_spare_free(thread);
    region_places_leave(thread);
    list_remove(&thread->link);
    list_append(&scm_orphans, &thread->link);
    left_keep_or_free(thread);
    left_note();
}

/* Registers the calling thread. Returns NULL if there is no memory. Called under scm_lock. */
static struct scm_thread *thread_begins(void)
{
    struct scm_thread *thread;

    if (!scm_start())
        return NULL;
    thread = left_take_orphan();
    if (!thread)
        thread = thread_state_make();
    if (!thread)
        return NULL;
    if (!global_time_join(thread)) {
        thread_ends(thread);
        return NULL;
    }
    note_id(thread);
    thread->number = ++last_number;
    thread_state_watch(thread);
    list_append(&scm_threads, &thread->link);
    return thread;
}

/* Returns whether a thread of this process is gone. In a child that no fork handler has prepared,
 * the parent's threads are gone, but their state is unknown, so this returns false. */
static bool is_gone(const struct scm_thread *thread)
{
    return thread->process == os_process_id() && !os_thread_exists(thread->id);
}

/* Removes a thread that has ended without notice. Global time stops waiting for it when the reader
 * slot is reaped. */
static void thread_reap(struct scm_thread *thread)
{
    if (!is_gone(thread))
        return;
    gp_phases_reap(scm_phases);
    if (!thread->blocked)
        global_time_leave();
    thread_ends(thread);
}

/* Reaps all threads that are gone. Called under scm_lock. */
void scm_threads_reap(void)
{
    struct list *item, *following;
    int saved_errno = errno;

    list_for_each_safe(item, following, &scm_threads)
    {
        thread_reap(list_entry(item, struct scm_thread, link));
    }
    errno = saved_errno;
}

/* Reaps threads that were in their destructors and are gone. Called by ticks, but checks only once
 * in a while, because each check is a system call. */
void scm_threads_reap_ending(void)
{
    static uint64_t looked_at;
    struct list *item, *following;
    int saved_errno = errno;

    if (!is_time_again(&looked_at, os_clock_ns(), LOOK_NS) || !os_lock_try(&scm_lock))
        return;
    list_for_each_safe(item, following, &scm_threads)
    {
        struct scm_thread *thread = list_entry(item, struct scm_thread, link);

        if (thread->ends)
            thread_reap(thread);
    }
    os_lock_release(&scm_lock);
    errno = saved_errno;
}

/* Reaps one thread if it is gone, each in turn. So never more threads that ended without notice
 * remain than take part. Called under scm_lock. */
static void reap_one(void)
{
    struct scm_thread *thread = list_first(&scm_threads, struct scm_thread, link);

    if (!thread)
        return;
    list_remove(&thread->link);
    list_append(&scm_threads, &thread->link);
    thread_reap(thread);
}

static void self_register(void)
{
    os_lock_take(&scm_lock);
    reap_one();
    mine = scm_self = thread_begins();
    left_note();
    os_lock_release(&scm_lock);
    if (mine && !ending && !reader_exit_watch_slow())
        scm_unregister_thread(); /* the end of the thread would not be seen */
}

static int refuse_ending(const char *what)
{
    os_report(
        "%s: called by a thread that is ending (in a destructor of thread-specific data), which "
        "takes part only for the time of each refresh",
        what);
    return EPERM;
}

int scm_register_thread(void)
{
    int saved_errno = errno;

    if (mine)
        return 0;
    if (ending)
        return refuse_ending("scm_register_thread");
    self_register();
    errno = saved_errno;
    return mine ? 0 : ENOMEM;
}

static int refuse_blocked(const char *what)
{
    os_report("%s: called by a blocked thread; call scm_resume_thread first", what);
    return EPERM;
}

struct scm_thread *scm_thread_enter(const char *what, int *error)
{
    int saved_errno = errno;

    if (mine) {
        *error = refuse_blocked(what);
        return NULL;
    }
    self_register();
    *error = mine ? 0 : ENOMEM;
    errno = saved_errno;
    return scm_self;
}

/* Registers the thread for calls that give it something. Returns NULL with errno (and reported) if
 * the thread is blocked or ending, or there is no memory. */
struct scm_thread *scm_thread_enter_to_stay(const char *what)
{
    int error = 0;

    if (likely(scm_self))
        return scm_self;
    if (ending)
        error = refuse_ending(what);
    else if (scm_thread_enter(what, &error))
        return scm_self;
    errno = error;
    return NULL;
}

/* Called after the call for which the thread entered. */
void scm_thread_leave(void)
{
    if (unlikely(ending))
        scm_unregister_thread();
}

/* Reports a call of an absent thread, once until it has taken part again, because a thread that
 * ticks without taking part does so at each tick. */
int scm_thread_refuse_absent(const char *what)
{
    if (mine)
        return refuse_blocked(what);
    if (!absence_reported)
        os_report(
            "%s: called by a thread that takes no part in short-term memory; call a refresh, "
            "scm_clock_create or scm_register_thread first",
            what);
    absence_reported = true;
    return EINVAL;
}

int scm_unregister_thread(void)
{
    struct scm_thread *thread = mine;

    if (!thread)
        return 0;
    if (thread->collecting) {
        os_report("scm_unregister_thread: called by a finalizer");
        return EPERM;
    }
    left_steps(thread);
    os_lock_take(&scm_lock);
    if (!thread->blocked && !is_visiting)
        leave_myself();
    is_visiting = false;
    mine = scm_self = NULL;
    absence_reported = false;
    real_time_left_step(thread, false);
    thread_ends(thread);
    os_lock_release(&scm_lock);
    return 0;
}

/* ------------------------------------------------------------------------------------- blocking */

static int thread_refuse(const char *what, const char *why, int error)
{
    os_report("%s: the thread %s", what, why);
    return error;
}

int scm_block_thread(void)
{
    struct scm_thread *thread = mine;

    if (!thread)
        return thread_refuse("scm_block_thread", "takes no part in short-term memory", EINVAL);
    if (thread->blocked)
        return thread_refuse("scm_block_thread", "is blocked already", EPERM);
    os_lock_take(&scm_lock);
    thread->blocked = true;
    scm_self = NULL;
    leave_myself();
    os_lock_release(&scm_lock);
    return 0;
}

int scm_resume_thread(void)
{
    struct scm_thread *thread = mine;

    if (!thread)
        return thread_refuse("scm_resume_thread", "takes no part in short-term memory", EINVAL);
    if (!thread->blocked)
        return thread_refuse("scm_resume_thread", "is not blocked", EPERM);
    os_lock_take(&scm_lock);
    if (global_time_join(thread)) {
        thread->blocked = false;
        scm_self = thread;
    }
    os_lock_release(&scm_lock);
    return scm_self ? 0 : ENOMEM;
}

/* ----------------------------------------------------------------------------------------- fork */

static void scm_threads_fork_prepare(void)
{
    os_lock_take_for_fork(&scm_lock);
}

static void scm_threads_fork_done(void)
{
    os_lock_release_from_fork(&scm_lock);
}

/*
 * Abandons the threads that the child does not have. They ran while page after page was copied, so
 * the child never touches their lists again, nor the objects with dates there. Orphans are
 * consistent.
 */
static void scm_threads_fork_child(bool whole)
{
    (void)whole;
    if (mine)
        list_remove(&mine->link);
    list_join(&scm_abandoned, &scm_threads);
    if (mine) {
        list_append(&scm_threads, &mine->link);
        note_id(mine);
    }
    active = scm_self != NULL;
    scm_ending = mine && mine->ends;
}

const struct fork_part scm_fork_part = {.order = FORK_SCM,
                                        .name = "short-term memory",
                                        .prepare = scm_threads_fork_prepare,
                                        .child = scm_threads_fork_child,
                                        .done = scm_threads_fork_done};
ENTER(fork_parts, scm_fork_part);
