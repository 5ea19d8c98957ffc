/* SPDX-License-Identifier: MIT */
/*
 * A matrix of forks. A row says what is going on in the process; a column is a way to make a child.
 * The child checks what the row says, then uses everything, forks, and its own child does so as
 * well. A failure names the row and the column.
 */
#ifndef TESTS_SUPPORT_FORK_MATRIX_H
#define TESTS_SUPPORT_FORK_MATRIX_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "os/os.h"
#include "posix.h"
#include "support/bare_fork.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/threads.h"

#define FORK_NOTICED "without the handlers of fork"
#define FORK_BUSY    3  /* threads that are busy */
#define FORK_TIMES   10 /* forks while they are */

enum { FORK_ALSO_BARE = 1, FORK_ONCE = 2 };

struct fork_row {
    const char *name;
    void (*set_up)(void);
    void *(*other)(void *unused); /* a thread, which runs up to fork_reach() before the fork */
    void (*busy)(void);           /* what other threads do again and again meanwhile */
    int (*in_child)(void);        /* 0: all is right */
    void (*tear_down)(void);
    unsigned flags; /* FORK_ALSO_BARE: no thread has a lock; FORK_ONCE: by fork() alone */
};

/* -------------------------------------------------------------------------------- other threads */

static sem_t fork_reached, fork_may_go_on;
static bool fork_stop; /* atomic */

static inline void fork_no_other(void)
{
    fork_stop = false;
    sem_init(&fork_reached, 0, 0);
    sem_init(&fork_may_go_on, 0, 0);
}

/* Called in a state that another thread, or a callback, is to be in at the fork. */
static inline void fork_reach(void)
{
    sem_post(&fork_reached);
    while (sem_wait(&fork_may_go_on))
        ;
}

static inline void fork_await(void)
{
    while (sem_wait(&fork_reached))
        ;
}

/* The same for a thread with a lock that fork waits for. */
static inline void fork_reach_with_lock(void)
{
    sem_post(&fork_reached);
    pause_ms(5);
}

static inline void *fork_be_busy(void *row)
{
    void (*busy)(void) = ((const struct fork_row *)row)->busy;

    busy();
    sem_post(&fork_reached);
    while (!load_relaxed(&fork_stop))
        busy();
    return NULL;
}

/* Makes a child by `make` while another thread, which runs `other`, is at fork_reach(). */
static inline void fork_while(void *(*other)(void *unused), pid_t (*make)(void),
                              int (*in_child)(void *argument), void *argument,
                              struct child_result *result)
{
    pthread_t thread;

    fork_no_other();
    thread = thread_start(other, NULL);
    fork_await();
    child_run_by(make, in_child, argument, result);
    sem_post(&fork_may_go_on);
    threads_join(&thread, 1);
}

/* -------------------------------------------------------------------------------------- columns */

static pid_t fork_by_handler;

static inline void fork_in_handler(int signal)
{
    (void)signal;
    fork_by_handler = fork();
}

static inline pid_t fork_by_signal(void)
{
    struct sigaction action = {.sa_handler = fork_in_handler}, before;

    sigaction(SIGUSR2, &action, &before);
    raise(SIGUSR2);
    sigaction(SIGUSR2, &before, NULL);
    return fork_by_handler;
}

static const struct fork_way {
    const char *name;
    pid_t (*make)(void);
    bool bare; /* without the handlers of fork */
} fork_ways[] = {
    {"fork", fork, false},
    {"fork in a signal handler", fork_by_signal, false},
    {"_Fork", _Fork, true},
    {"clone", bare_fork, true},
};

/* ------------------------------------------------------------------------------------- children */

static inline void fork_called(struct prudence_head *head)
{
    (void)head;
}

static struct {
    const struct fork_row *row;
    const struct fork_way *way;
} forking;

/* A child of clone makes no threads: the C library knows the id of its first thread no more. Nor
 * does a child under AddressSanitizer: gcc 12's holds no lock of its allocator over fork, so the
 * first allocation of a new thread may wait for ever, if a thread of the parent had that lock. */
static inline bool fork_child_has_threads(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return false;
#else
    return !forking.way || forking.way->make != bare_fork;
#endif
}

static inline void use_everything(void)
{
    struct prudence_cache *cache = prudence_cache_create("child's", 72, NULL);
    static struct prudence_head head;

    for (unsigned i = 0; i < 2000; i++) {
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_free(prudence_malloc(i * 7));
        prudence_free_deferred(prudence_malloc(i * 41));
        prudence_free_deferred(prudence_aligned_alloc(4096, i * 7));
    }
    if (fork_child_has_threads())
        prudence_call(&head, fork_called);
    prudence_synchronize();
    assert_true(!fork_child_has_threads() || prudence_barrier() == 0);
    prudence_trim();
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static inline int fork_child(void *unused)
{
    int wrong, status;
    pid_t child;

    (void)unused;
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* an assertion ends this process */
    assert_false(os_lock_forking || os_busy);
    wrong = forking.row->in_child ? forking.row->in_child() : 0;
    if (wrong)
        return wrong;
    use_everything();
    child = fork();
    if (child == 0) {
        use_everything();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(forking.way->bare || !os_copy_made);
    return 42;
}

static inline void fork_by(const struct fork_row *row, const struct fork_way *way)
{
    unsigned busy = row->busy ? FORK_BUSY : 0, reports;
    pthread_t threads[FORK_BUSY], other = 0;
    struct child_result result;

    forking.row = row;
    forking.way = way;
    fork_no_other();
    if (row->set_up)
        row->set_up();
    for (unsigned i = 0; i < busy; i++)
        threads[i] = thread_start(fork_be_busy, (void *)(uintptr_t)row);
    for (unsigned i = 0; i < busy; i++)
        fork_await();
    if (row->other) {
        other = thread_start(row->other, NULL);
        fork_await();
    }
    reports = way->bare && !os_is_single_threaded();
    for (unsigned i = 0; i < (busy ? FORK_TIMES : 1); i++) {
        child_run_by(way->make, fork_child, NULL, &result);
        if (!child_exited_with(&result, 42) || child_said(&result, "exits inside") ||
            child_count(&result, FORK_NOTICED) != reports)
            fail_msg("%s, by %s: status %#x: %s", row->name, way->name, (unsigned)result.status,
                     result.output);
    }
    assert_false(os_lock_forking || os_busy);
    sem_post(&fork_may_go_on);
    store_relaxed(&fork_stop, true);
    threads_join(threads, busy);
    if (row->other)
        threads_join(&other, 1);
    if (row->tear_down)
        row->tear_down();
}

static inline void fork_matrix(const struct fork_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t way = 0; way < sizeof fork_ways / sizeof fork_ways[0]; way++)
            if (!(fork_ways[way].bare && !(rows[i].flags & FORK_ALSO_BARE)) &&
                !(way > 0 && rows[i].flags & FORK_ONCE))
                fork_by(&rows[i], &fork_ways[way]);
}

#endif /* TESTS_SUPPORT_FORK_MATRIX_H */
