/* SPDX-License-Identifier: MIT */
/*
 * Threads of the library's own, and sleeping until a word changes. The threads are detached, block
 * all signals (the program's are not theirs), and have ordinary priority (ADR 8).
 */
#define _GNU_SOURCE /* CPU_SET, pthread_setname_np */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

struct start {
    void (*body)(void *argument);
    void *argument;
};

static void *run(void *at)
{
    struct start start = *(struct start *)at;

    os_meta_free(at, sizeof start);
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* ns; 50 us otherwise, on top of each sleep */
    start.body(start.argument);
    return NULL;
}

/* Else where the process's first thread may run: not only where the one that happens to start it is
 * bound to. */
static void bind_to(pthread_t thread, int cpu)
{
    cpu_set_t cpus;

    if (cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_ZERO(&cpus);
        CPU_SET(cpu, &cpus);
    } else if (sched_getaffinity(getpid(), sizeof cpus, &cpus)) {
        return;
    }
    pthread_setaffinity_np(thread, sizeof cpus, &cpus);
}

bool os_thread_start(const char *name, int cpu, void (*body)(void *argument), void *argument)
{
    struct start *start = os_meta_alloc(sizeof *start);
    sigset_t saved, all;
    pthread_t thread;
    bool started;

    if (!start)
        return false;
    *start = (struct start){.body = body, .argument = argument};
    os_foreign_call("pthread_create, which allocates");
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    started = pthread_create(&thread, NULL, run, start) == 0;
    if (started) {
        pthread_setname_np(thread, name);
        bind_to(thread, cpu);
        pthread_detach(thread);
    } else {
        os_meta_free(start, sizeof *start);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    return started;
}

void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    struct timespec time = {.tv_sec = (time_t)(nanoseconds / 1000000000),
                            .tv_nsec = (long)(nanoseconds % 1000000000)};

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nanoseconds ? &time : NULL, NULL, 0);
}

void os_word_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
