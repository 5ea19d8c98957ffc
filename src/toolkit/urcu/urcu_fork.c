/* SPDX-License-Identifier: MIT */
/*
 * liburcu-cds across fork. A hash table that resizes itself has a worker thread, which a child does
 * not have. So the table library registers handlers with its flavour. Before a fork they stop the
 * worker between two pieces of work; afterwards the worker goes on, in the child as a new thread.
 *
 * liburcu calls the handlers in call_rcu_before_fork and related functions, which a program must
 * call. Here every fork calls them, and a program that calls call_rcu_before_fork only does so
 * earlier. Stopping waits for the worker, which may wait for a grace period, and so for a reader,
 * which may wait for a lock of the forking thread. This is an implicit wait, which needs a
 * deadline, and the handler has none. So a thread of the library calls the handler, and if that
 * takes longer than wait_max the fork goes on. The child then reports that tables which resize
 * themselves must not be destroyed.
 *
 * A handler of the program that runs between the library's own may call call_rcu_before_fork, too.
 * The thread that stops the worker then waits for the end of the fork, and the worker may do so, so
 * such a call waits for neither.
 *
 * Several callers (forks, the program) may want the worker stopped at the same time. The first
 * stops the worker, the last lets it go on. `lock` guards the state, and is not held while handlers
 * are called; fork holds it.
 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <prudence/urcu-compat/urcu/flavor.h>

#include "fork_part.h"
#include "heap/heap.h"
#include "slab/reclaim/wait.h"

#define HANDLERS 4 /* copies of liburcu-cds in one process */
#define LOOK_NS  20000
#define FOREVER  UINT64_MAX

static struct handler {
    struct urcu_atfork *atfork; /* NULL: free; set by compare-and-swap */
    uint32_t registered;        /* number of registrations */
} handlers[HANDLERS];

enum state {
    GOES_ON,
    STOPPING, /* a thread of the library, or the caller of call_rcu_before_fork, stops it */
    STOPPED,
    STARTING,
    LOST, /* in a child whose worker was not stopped */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum state state;
static unsigned wanted; /* number of callers that want the worker stopped */
static struct urcu_atfork *stopped[HANDLERS];
static __thread bool by_this_fork;
static __thread bool by_program; /* between call_rcu_before_fork and its counterpart */

/* Takes the lock. A signal handler that forks finds this thread busy. */
static void urcu_fork_lock(void)
{
    os_busy_enter();
    if (!os_lock_forking)
        pthread_mutex_lock(&lock);
}

static void urcu_fork_unlock(void)
{
    if (!os_lock_forking)
        pthread_mutex_unlock(&lock);
    os_busy_leave();
}

/* ------------------------------------------------------------------------------------- handlers */

void prudence_urcu_atfork_register(struct urcu_atfork *atfork)
{
    for (unsigned i = 0; i < HANDLERS; i++) {
        struct urcu_atfork *known = load_acquire(&handlers[i].atfork);

        if (known == atfork || (!known && (compare_exchange(&handlers[i].atfork, &known, atfork) ||
                                           known == atfork))) {
            add_relaxed(&handlers[i].registered, 1);
            return;
        }
    }
    os_report("more than %d copies of liburcu-cds: the tables of this one will not survive a fork",
              HANDLERS);
}

void prudence_urcu_atfork_unregister(struct urcu_atfork *atfork)
{
    for (unsigned i = 0; i < HANDLERS; i++)
        if (load_acquire(&handlers[i].atfork) == atfork &&
            sub_relaxed(&handlers[i].registered, 1) == 1)
            store_release(&handlers[i].atfork, NULL);
}

static bool any_registered(void)
{
    for (unsigned i = 0; i < HANDLERS; i++)
        if (load_acquire(&handlers[i].atfork))
            return true;
    return false;
}

static void call_before(void)
{
    for (unsigned i = 0; i < HANDLERS; i++) {
        stopped[i] = load_acquire(&handlers[i].atfork);
        if (stopped[i])
            stopped[i]->before_fork(stopped[i]->priv);
    }
}

static void call_after(bool child)
{
    for (unsigned i = 0; i < HANDLERS; i++) {
        if (stopped[i] && child)
            stopped[i]->after_fork_child(stopped[i]->priv);
        else if (stopped[i])
            stopped[i]->after_fork_parent(stopped[i]->priv);
        stopped[i] = NULL;
    }
}

/* --------------------------------------------------------------------------- stopping, going on */

/* Called with the lock held; releases it. */
static void go_on(void)
{
    state = STARTING;
    urcu_fork_unlock();
    call_after(false);
    urcu_fork_lock();
    state = GOES_ON;
    urcu_fork_unlock();
}

static void stop(void *unused)
{
    (void)unused;
    call_before();
    urcu_fork_lock();
    state = STOPPED;
    if (wanted)
        urcu_fork_unlock();
    else
        go_on(); /* all callers have given up */
}

/* Takes one step towards a stopped worker. Called with the lock held; releases it. */
static void begin_to_stop(bool here)
{
    state = STOPPING;
    urcu_fork_unlock();
    if (here) {
        stop(NULL);
    } else if (!os_thread_start("prudence-fork", -1, 0, stop, NULL)) {
        urcu_fork_lock();
        state = GOES_ON;
        urcu_fork_unlock();
    }
}

/* Waits until the worker is stopped. With FOREVER this thread does the stopping, without limit;
 * with 0 nothing is done, and the result is whether it is stopped already. */
static bool want_stopped(uint64_t patience)
{
    uint64_t began = os_clock_ns();

    urcu_fork_lock();
    wanted++;
    while (state != STOPPED && state != LOST && os_clock_ns() - began < patience) {
        if (state == GOES_ON)
            begin_to_stop(patience == FOREVER);
        else
            urcu_fork_unlock();
        os_sleep_ns(LOOK_NS);
        urcu_fork_lock();
    }
    if (state != STOPPED) {
        wanted--;
        urcu_fork_unlock();
        return false;
    }
    urcu_fork_unlock();
    return true;
}

static void want_no_more(void)
{
    urcu_fork_lock();
    if (--wanted == 0 && state == STOPPED)
        go_on();
    else
        urcu_fork_unlock();
}

void prudence_urcu_before_fork(void)
{
    if (by_program || !any_registered())
        return;
    by_program = want_stopped(os_lock_forking ? 0 : FOREVER);
    if (!by_program && os_lock_forking)
        os_report(
            "call_rcu_before_fork, called in a handler of pthread_atfork, does not stop "
            "liburcu-cds' worker, because that may wait for the end of the fork; call it "
            "before the fork");
}

void prudence_urcu_after_fork_parent(void)
{
    if (by_program)
        want_no_more();
    by_program = false;
}

/* -------------------------------------------------------------------------------- at every fork */

static void urcu_fork_tables_prepare(void)
{
    int saved_errno = errno;

    by_this_fork = any_registered() && want_stopped(load_relaxed(&slab_wait_max));
    pthread_mutex_lock(&lock);
    errno = saved_errno;
}

/* In the child only this thread wants the worker stopped. */
static void urcu_fork_tables_child(bool whole)
{
    if (!whole)
        return;
    if (state == STOPPED) {
        wanted = 1;
    } else if (any_registered()) {
        state = LOST;
        os_report(
            "process %d: liburcu-cds' worker did not stop within wait_max before the fork: hash "
            "tables that resize themselves must not be destroyed in this child (call "
            "call_rcu_before_fork before the fork)",
            os_process_id());
    }
}

static void urcu_fork_tables_done(void)
{
    pthread_mutex_unlock(&lock);
}

static void urcu_fork_tables_resume(void)
{
    if (by_this_fork)
        want_no_more();
    by_this_fork = false;
}

/* Does the work of call_rcu_after_fork_child. */
static void urcu_fork_tables_revive(void)
{
    int saved_errno = errno;

    by_this_fork = by_program = false;
    if (state == STOPPED) {
        call_after(true);
        wanted = 0;
        state = GOES_ON;
    }
    errno = saved_errno;
}

/* resume and revive run without locks held. */
const struct fork_part urcu_tables_fork_part = {.order = FORK_URCU_TABLES,
                                                .name = "liburcu's tables",
                                                .prepare = urcu_fork_tables_prepare,
                                                .child = urcu_fork_tables_child,
                                                .done = urcu_fork_tables_done,
                                                .resume = urcu_fork_tables_resume,
                                                .revive = urcu_fork_tables_revive};
ENTER(fork_parts, urcu_tables_fork_part);
