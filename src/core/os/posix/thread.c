/* SPDX-License-Identifier: MIT */
/*
 * The library's own threads, and sleeping until a word changes.
 *
 * Every thread of the library is started here, by the thread of the program that first needs one.
 * The new thread inherits nothing from that thread, but has the policy, nice value and CPUs with
 * which the process was started. Threads that changed their own since (real-time or idle policy, a
 * CPU of their own) did so for themselves alone. But if a whole process was started on certain
 * CPUs, or to run when nothing else does, the helpers run so too. A process started with a
 * real-time policy has ordinary helpers. All signals are blocked, because the program's signals are
 * not meant for these threads. Faults are not blocked: they belong to the thread that causes them,
 * in a callback for example, and the program's handlers must see them. Threads are detached (ADR 7,
 * ADR 28). last_threads.c describes how the process ends when no others remain.
 */
#define _GNU_SOURCE /* CPU_SET, pthread_attr_setaffinity_np */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

struct start {
    void (*body)(void *argument);
    void *argument;
    const char *name;
};

/* How the process was started. Constant after start. */
static int process_policy READ_MOSTLY = SCHED_OTHER, process_nice READ_MOSTLY = 0;
static cpu_set_t process_cpus;
static bool process_cpus_known;

/* Asks by system calls. The C library's functions lie apart, and each would make 64 KB of it
 * resident in a program that does not call them. */
COLD void posix_threads_start(void)
{
    int saved_errno = errno;
    long process = syscall(SYS_getpid), policy = syscall(SYS_sched_getscheduler, process);
    long rank = syscall(SYS_getpriority, PRIO_PROCESS, process); /* 20 - nice, or -1 */

    policy &= ~SCHED_RESET_ON_FORK;
    process_policy = policy == SCHED_BATCH || policy == SCHED_IDLE ? (int)policy : SCHED_OTHER;
    process_nice = rank > 0 ? 20 - (int)rank : 0;
    process_cpus_known =
        syscall(SYS_sched_getaffinity, process, sizeof process_cpus, &process_cpus) > 0;
    errno = saved_errno;
}

static void *run(void *at)
{
    const struct sched_param none = {.sched_priority = 0};
    struct start start = *(struct start *)at;

    os_meta_free(at, sizeof start);
    posix_thread_begins();
    prctl(PR_SET_NAME, start.name);
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul); /* ns; the default adds 50 us to sleeps */
    if (process_policy != SCHED_OTHER)               /* attributes cannot say so */
        syscall(SYS_sched_setscheduler, 0, process_policy,
                &none);                         /* musl's function does nothing */
    setpriority(PRIO_PROCESS, 0, process_nice); /* of this thread only; may be refused */
    start.body(start.argument);
    posix_thread_ends();
    return NULL;
}

/* Wishes for a new thread. When the system refuses, they are dropped one by one, from the last. */
enum { WANT_NOTHING, WANT_STACK, WANT_PROCESS_CPUS, WANT_CPU, WANT_POLICY };

/* Musl's attributes have no CPUs: there the new thread has those of the thread that starts it. */
static void attributes_set_cpus(pthread_attr_t *attributes, const cpu_set_t *cpus)
{
#if defined(__GLIBC__)
    pthread_attr_setaffinity_np(attributes, sizeof *cpus, cpus);
#else
    (void)attributes, (void)cpus;
#endif
}

static void attributes_set(pthread_attr_t *attributes, int want, int cpu, size_t stack)
{
    struct sched_param ordinary = {.sched_priority = 0};
    cpu_set_t one;

    pthread_attr_setdetachstate(attributes, PTHREAD_CREATE_DETACHED);
    if (want >= WANT_STACK && stack)
        pthread_attr_setstacksize(attributes, stack);
    if (want >= WANT_CPU && cpu >= 0 && cpu < CPU_SETSIZE) {
        CPU_ZERO(&one);
        CPU_SET((unsigned)cpu, &one);
        attributes_set_cpus(attributes, &one);
    } else if (want >= WANT_PROCESS_CPUS && process_cpus_known) {
        attributes_set_cpus(attributes, &process_cpus);
    }
    if (want < WANT_POLICY || process_policy == SCHED_IDLE)
        return; /* any thread may take the idle policy */
    pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
    pthread_attr_setschedparam(attributes, &ordinary);
}

static int create(struct start *start, int want, int cpu, size_t stack)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int error;

    if (pthread_attr_init(&attributes))
        return ENOMEM;
    attributes_set(&attributes, want, cpu, stack);
    error = pthread_create(&thread, &attributes, run, start);
    pthread_attr_destroy(&attributes);
    return error;
}

/* Reports a thread that kept the starter's policy. A thread that may not leave the idle policy
 * (RLIMIT_NICE) cannot create a thread with another one either. */
static void report_refusal(const char *name, int policy)
{
    static uint32_t reported;

    if (policy != SCHED_OTHER && policy != process_policy && !exchange_relaxed(&reported, 1))
        os_report(
            "thread '%s' of the library has scheduling policy %d of the thread that needed it "
            "first, because the system refused another policy (RLIMIT_NICE). Threads that wait for "
            "it may wait long on a busy machine; let an ordinary thread be the first",
            name, policy);
}

static bool create_somehow(struct start *start, int cpu, size_t stack)
{
    const char *name = start->name; /* the new thread frees `start` */

    for (int want = WANT_POLICY; want >= WANT_NOTHING; want--) {
        int error = create(start, want, cpu, stack);

        if (!error && want < WANT_POLICY)
            report_refusal(name, (int)syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK);
        if (error != EPERM && error != EINVAL)
            return !error;
    }
    return false;
}

bool os_thread_start(const char *name, int cpu, size_t stack, void (*body)(void *argument),
                     void *argument)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    struct start *start;
    sigset_t saved, blocked;
    int saved_errno = errno; /* a deferred free may come here */
    bool started;

    if (!os_calls_widen())
        return false;
    start = os_meta_alloc(sizeof *start);
    if (!start)
        return false;
    *start = (struct start){.body = body, .argument = argument, .name = name};
    os_foreign_call("pthread_create, which allocates");
    posix_watch_main();
    posix_thread_is_made(true);
    sigfillset(&blocked);
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &saved);
    started = create_somehow(start, cpu, stack);
    if (!started) {
        posix_thread_is_made(false);
        os_meta_free(start, sizeof *start);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    errno = saved_errno;
    return started;
}

void os_word_wait(uint32_t *word, uint32_t value, uint64_t nanoseconds)
{
    if (!nanoseconds)
        os_thread_waits(true);
    posix_word_wait(word, value, nanoseconds);
    if (!nanoseconds)
        os_thread_waits(false);
}

void os_word_wake_some(uint32_t *word, unsigned count)
{
    posix_word_wake(word, count);
}

void os_word_wake(uint32_t *word)
{
    posix_word_wake(word, INT32_MAX);
}
