/* SPDX-License-Identifier: MIT */
/*
 * Ends a process whose main function ended by pthread_exit. Such a process should end with its
 * last thread, but the library's threads may be permanent, and they block the signals that would
 * end the process. So the ending main thread starts one more thread, which checks now and then
 * whether only threads of the library remain, all of which wait with nothing to do, and then
 * calls exit(0), as the C library does after the last thread. A process that ends together with its
 * main thread, or has no thread of the library, never has this thread.
 *
 * The destructor of a pthread key sees the end of the main thread. The main thread gets the key by
 * starting a thread of the library itself, as for background=1. If another thread starts the first
 * one, the end of the main thread goes unseen.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define PAUSE_MIN_NS UINT64_C(1000000)
#define PAUSE_MAX_NS UINT64_C(1000000000)

static pthread_once_t last_threads_once = PTHREAD_ONCE_INIT;
static pthread_key_t last_threads_key;
static bool has_key;
static uint32_t library_threads; /* atomic, like the next */
static uint32_t waiting_threads; /* those that nothing of the program waits for */
static __thread bool thread_is_ours;

void posix_thread_begins(void)
{
    thread_is_ours = true;
}

void posix_thread_is_made(bool made)
{
    add_relaxed(&library_threads, made ? 1u : UINT32_MAX);
}

void posix_thread_ends(void)
{
    if (thread_is_ours)
        posix_thread_is_made(false);
}

void os_thread_waits(bool waits)
{
    if (thread_is_ours)
        add_relaxed(&waiting_threads, waits ? 1u : UINT32_MAX);
}

/* Returns whether only waiting threads remain, plus the main thread, which stays as a zombie,
 * and the caller. Only a thread that is not waiting can wake one that is. */
static bool only_ours_are_left(void)
{
    uint32_t waiting = load_acquire(&waiting_threads);
    unsigned threads = os_thread_count();

    os_full_fence();
    return threads == waiting + 2 && load_acquire(&waiting_threads) == waiting;
}

static void *look_for_the_end(void *unused)
{
    uint64_t pause = PAUSE_MIN_NS;

    prctl(PR_SET_NAME, "prudence-last");
    while (!posix_thread_is_zombie(getpid()) || !only_ours_are_left()) {
        os_sleep_ns(pause);
        pause = min_size(2 * pause, PAUSE_MAX_NS);
    }
    exit(0); /* NOLINT(concurrency-mt-unsafe): no other thread runs */
    return unused;
}

/* Runs as the last thing that the main thread does for us. If no thread can be made, the process
 * stays. */
static void main_ends(void *unused)
{
    pthread_attr_t attributes;
    sigset_t all, saved;
    pthread_t thread;

    (void)unused;
    if (!load_acquire(&library_threads) || pthread_attr_init(&attributes))
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    pthread_create(&thread, &attributes, look_for_the_end, NULL);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
}

static void make_key(void)
{
    has_key = pthread_key_create(&last_threads_key, main_ends) == 0;
}

void posix_watch_main(void)
{
    if (syscall(SYS_gettid) != getpid())
        return;
    pthread_once(&last_threads_once, make_key);
    if (has_key)
        pthread_setspecific(last_threads_key, &last_threads_key);
}

/* The forking thread is the child's main thread, even if it is one of ours that runs a callback. */
void posix_last_threads_fork_child(void)
{
    thread_is_ours = false;
    store_relaxed(&library_threads, 0u); /* a copy by clone may have threads when noticed */
    store_relaxed(&waiting_threads, 0u);
}
