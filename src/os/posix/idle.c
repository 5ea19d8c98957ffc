/* SPDX-License-Identifier: MIT */
/*
 * The idle helper: one detached thread under SCHED_IDLE, with all signals blocked. It is started by
 * the first kick, that is only when the option background is on.
 */
#define _GNU_SOURCE /* SCHED_IDLE, CPU_SET, pthread_setname_np */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define PAUSE_NS 1000000 /* between rounds: idle work is never urgent enough to spin */

static uint32_t started, awake;
static bool (*current_work)(void);

static void *help(void *unused)
{
    struct sched_param none = {.sched_priority = 0};

    (void)unused;
    sched_setscheduler(0, SCHED_IDLE, &none);
    for (;;) {
        while (load_relaxed(&current_work)())
            os_sleep_ns(PAUSE_NS);
        os_sleep_ns(PAUSE_NS);
        store_release(&awake, 0u);
        syscall(SYS_futex, &awake, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    return NULL;
}

static void start(void)
{
    sigset_t saved, all;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    if (pthread_create(&thread, NULL, help, NULL) == 0) {
        pthread_setname_np(thread, "prudence-idle");
        pthread_detach(thread);
    } else {
        store_release(&started, 0u); /* again at the next kick; nothing depends on it */
        store_release(&awake, 0u);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

void os_idle_kick(bool (*work)(void))
{
    uint32_t no = 0;

    if (load_relaxed(&awake))
        return;
    if (!compare_exchange(&awake, &no, 1u))
        return;
    store_relaxed(&current_work, work); /* the same function each time */
    no = 0;
    if (compare_exchange(&started, &no, 1u))
        start();
    else
        syscall(SYS_futex, &awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool os_idle_move_to(unsigned cpu)
{
    cpu_set_t one;

    if (cpu >= CPU_SETSIZE)
        return false;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

void posix_idle_fork_child(void)
{
    started = awake = 0;
}
