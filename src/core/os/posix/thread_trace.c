/* SPDX-License-Identifier: MIT */
/*
 * Takes the trace of another thread by a signal, whose handler captures the trace and says so.
 *
 * The signal is SIGURG, which is ignored by default, so nothing happens to the process if our
 * handler is not (or no longer) installed. Programs hardly use SIGURG, and debuggers pass it on (Go
 * preempts threads with it for the same reasons). The signal interrupts the call in which the
 * thread waits. SA_RESTART continues most calls, but sleeps and waits with a timeout return EINTR,
 * so traces are taken only on request.
 *
 * There is one request at a time. A late signal finds the request withdrawn. A signal that is not
 * ours is passed to the handler that was there before.
 */
#define _GNU_SOURCE /* gettid */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define TRACE_SIGNAL SIGURG
#define LOOK_NS      100000

enum state { FREE, BUSY, ASKED, CAPTURING, ANSWERED };

static struct {
    /* of the one request; the requester moves it from FREE to BUSY, the handler from ASKED to
     * CAPTURING, both by compare-and-swap */
    uint32_t state;
    uint32_t thread; /* kernel id of the thread that is asked */
    void *frames[OS_TRACE_MAX];
    unsigned count;
} request;

static uint32_t installed; /* 0, 1 while it is being installed, or 2 */
static struct sigaction before;

static bool is_request(const siginfo_t *info)
{
    return info->si_code == SI_QUEUE && info->si_pid == getpid() &&
           info->si_value.sival_ptr == (const void *)&request;
}

static void thread_trace_on_signal(int number, siginfo_t *info, void *context)
{
    uint32_t asked = ASKED;
    int saved_errno = errno;

    if (!is_request(info))
        posix_signal_pass_on(&before, number, info, context);
    else if (load_acquire(&request.thread) == (uint32_t)gettid() &&
             compare_exchange(&request.state, &asked, (uint32_t)CAPTURING)) {
        request.count = os_trace_capture(request.frames, OS_TRACE_MAX);
        store_release(&request.state, (uint32_t)ANSWERED);
    }
    errno = saved_errno;
}

void os_thread_trace_start(void)
{
    uint32_t no = 0;

    os_trace_prime();
    if (!compare_exchange(&installed, &no, 1u))
        return;
    sigaction(TRACE_SIGNAL, NULL, &before);
    posix_signal_stand_before(TRACE_SIGNAL, thread_trace_on_signal, 0, &before);
    store_release(&installed, 2u);
}

static bool is_installed(void)
{
    struct sigaction present;

    return load_acquire(&installed) == 2 && sigaction(TRACE_SIGNAL, NULL, &present) == 0 &&
           present.sa_flags & SA_SIGINFO && present.sa_sigaction == thread_trace_on_signal;
}

static bool send(int thread)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = TRACE_SIGNAL;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = &request;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, TRACE_SIGNAL, &info) == 0;
}

/* Waits for the answer. A handler that is capturing when the patience ends is quick, so it is
 * waited for. */
static unsigned thread_trace_collect(void **frames, unsigned count, uint64_t patience)
{
    uint64_t deadline = os_clock_ns() + patience;
    uint32_t asked = ASKED;

    while (load_acquire(&request.state) != ANSWERED) {
        if (os_clock_ns() >= deadline && compare_exchange(&request.state, &asked, (uint32_t)BUSY)) {
            posix_trace_failure =
                "the thread has not answered SIGURG: it blocks the signal, or gets no CPU";
            return 0;
        }
        asked = ASKED;
        os_sleep_ns(LOOK_NS);
    }
    count = (unsigned)min_size(count, request.count);
    if (!count)
        posix_trace_failure = "its stack cannot be unwound";
    memcpy(frames, request.frames, count * sizeof *frames);
    return count;
}

/* Takes the one request. Returns why that is impossible, else NULL. */
static const char *thread_trace_begin(void)
{
    uint32_t free = FREE;

    if (os_calls_are_few())
        return "system calls are few (sandbox)";
    if (!is_installed())
        return "the program has replaced the library's handler of SIGURG, as Go does";
    if (!compare_exchange(&request.state, &free, (uint32_t)BUSY))
        return "another trace is being taken";
    return NULL;
}

unsigned os_thread_trace(int thread, void **frames, unsigned count, uint64_t patience)
{
    unsigned captured = 0;

    posix_trace_failure = NULL;
    if (thread == os_thread_id())
        return os_trace_capture(frames, count);
    posix_trace_failure = thread_trace_begin();
    if (posix_trace_failure)
        return 0;
    store_release(&request.thread, (uint32_t)thread);
    store_release(&request.state, (uint32_t)ASKED);
    if (send(thread))
        captured = thread_trace_collect(frames, count, patience);
    else
        posix_trace_failure = "the thread cannot be signaled";
    store_release(&request.state, (uint32_t)FREE);
    return captured;
}

/* Resets the request, because another thread's is not the child's. */
void posix_thread_trace_fork_child(void)
{
    request.state = FREE;
    if (installed == 1)
        installed = 0; /* by a thread that is gone */
}
