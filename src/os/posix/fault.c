/* SPDX-License-Identifier: MIT */
/*
 * Faults: SIGSEGV, looked at before the program's own handler sees it.
 *
 * Our handler only looks; then it does what the signal would have done without it: the program's
 * handler is called, or the default action is put back, and the instruction that faulted, run again,
 * ends the process by the original signal.
 *
 * Programs install their handlers after we did. So os_fault_watch() is called again from time to
 * time: it finds that and steps in front of the new one. A handler that calls the one it found
 * (ours) meets itself again through us; that second entry goes to whom we found first of all.
 */
#define _GNU_SOURCE /* REG_RIP */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>

#include "os/os.h"

static void (*look_at)(const struct os_fault *fault);
static struct sigaction first_found, found;
static __thread bool looking;

static void describe(const siginfo_t *info, const void *context, struct os_fault *fault)
{
    *fault = (struct os_fault){.address = info->si_addr, .access = OS_ACCESS_UNKNOWN};
#if defined(__x86_64__)
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;

    fault->code = (void *)registers[REG_RIP]; /* NOLINT(performance-no-int-to-ptr) */
    fault->access = registers[REG_ERR] & 2 ? OS_ACCESS_WRITE : OS_ACCESS_READ;
#else
    (void)context;
#endif
}

/* What would have happened without us. */
static void pass_on(struct sigaction *action, int number, siginfo_t *info, void *context)
{
    bool faulted = info->si_code > 0; /* else another process, or a thread, sent it */

    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler == SIG_DFL || (action->sa_handler == SIG_IGN && faulted)) {
        signal(number, SIG_DFL);
        if (!faulted)
            raise(number); /* delivered when this handler returns */
    } else if (action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    struct os_fault fault;
    int saved_errno = errno;

    if (looking) {
        pass_on(&first_found, number, info, context);
    } else {
        looking = true;
        if (info->si_code > 0) {
            describe(info, context, &fault);
            look_at(&fault);
        }
        pass_on(&found, number, info, context);
        looking = false;
    }
    errno = saved_errno;
}

static bool is_ours(const struct sigaction *action)
{
    return action->sa_flags & SA_SIGINFO && action->sa_sigaction == on_fault;
}

void os_fault_watch(void (*look)(const struct os_fault *fault))
{
    struct sigaction present, ours = {.sa_sigaction = on_fault};

    if (sigaction(SIGSEGV, NULL, &present) != 0 || is_ours(&present))
        return;
    if (!look_at)
        first_found = present;
    found = present;
    look_at = look;
    ours.sa_mask = present.sa_mask;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (present.sa_flags & (SA_NODEFER | SA_RESTART));
    sigaction(SIGSEGV, &ours, NULL);
}
