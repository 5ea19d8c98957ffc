/* SPDX-License-Identifier: MIT */
/*
 * Examines SIGSEGV faults before the program's own handler.
 *
 * Our handler only checks, then lets the signal take effect as if there were no such handler. It
 * either calls the program's handler or restores the default action; then the faulting instruction
 * runs again, and the original signal ends the process.
 *
 * Programs install their handlers after we did. So fault_handler_watch() is called again from time
 * to time, notices that, and steps in front of the new handler. A handler that calls the previous
 * one (ours) is reached again through us. So at each further entry for the same fault, we call an
 * older handler. Handlers that leave by siglongjmp do no harm, because an entry counts as another
 * one for the same fault only if the signal's context is the same and the frame lies deeper.
 *
 * A program that restores the handler from before its own restores one of ours. We have one
 * function for each handler that we found, so the restored function says which of them the program
 * has not removed.
 */
#define _GNU_SOURCE /* REG_RIP */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "guard/fault_handler.h"
#include "os/os.h"

#define FOUND_MAX 8 /* the last handlers that we stepped in front of */

static void (*fault_look_at)(const struct fault *fault);
static struct sigaction found[FOUND_MAX];
static unsigned found_count;

static __thread struct {
    const void *context, *frame;
    unsigned left; /* handlers that this fault may still call: the oldest of `found` */
} serving;

#if defined(__aarch64__)
/* Finds the exception syndrome among the records after the registers. */
static bool find_syndrome(const mcontext_t *registers, uint64_t *syndrome)
{
    const unsigned char *at = (const void *)&registers->__reserved;
    const unsigned char *end = at + sizeof registers->__reserved;
    struct esr_context record;

    while (at + sizeof record <= end) {
        memcpy(&record, at, sizeof record);
        if (record.head.magic == ESR_MAGIC) {
            *syndrome = record.esr;
            return true;
        }
        if (!record.head.magic || record.head.size < sizeof record.head)
            break;
        at += record.head.size;
    }
    return false;
}
#endif

static void describe(const siginfo_t *info, const void *context, struct fault *fault)
{
    *fault = (struct fault){.address = info->si_addr, .access = ACCESS_UNKNOWN};
#if defined(__x86_64__)
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;

    fault->code = (void *)registers[REG_RIP]; /* NOLINT(performance-no-int-to-ptr) */
    fault->access = registers[REG_ERR] & 2 ? ACCESS_WRITE : ACCESS_READ;
#elif defined(__aarch64__)
    const ucontext_t *state = context;
    uint64_t syndrome;

    fault->code = (void *)state->uc_mcontext.pc; /* NOLINT(performance-no-int-to-ptr) */
    if (find_syndrome(&state->uc_mcontext, &syndrome))
        fault->access = syndrome & 0x40 ? ACCESS_WRITE : ACCESS_READ; /* WnR */
#else
    (void)context;
#endif
}

/* Returns the action, and resets one whose handler is for one signal only. */
static struct sigaction fault_use(struct sigaction *action)
{
    struct sigaction used = *action;

    if (used.sa_flags & (int)SA_RESETHAND)
        *action = (struct sigaction){.sa_handler = SIG_DFL};
    return used;
}

/* Lets the signal take effect as without us; NULL stands for the default action. */
static void fault_pass_on(struct sigaction *found_action, int number, siginfo_t *info,
                          void *context)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    bool faulted = info->si_code > 0; /* otherwise a process or a thread sent it */
    void (*handler)(int);

    if (found_action)
        action = fault_use(found_action);
    handler = action.sa_handler;
    if (handler == SIG_DFL || (handler == SIG_IGN && faulted)) { /* also with SA_SIGINFO */
        signal(number, SIG_DFL);
        if (!faulted)
            raise(number); /* delivered when this handler returns */
    } else if (handler != SIG_IGN && action.sa_flags & SA_SIGINFO) {
        action.sa_sigaction(number, info, context);
    } else if (handler != SIG_IGN) {
        handler(number);
    }
}

/* Examines a fault, and lets the signal take effect as if only the first `count` of the handlers
 * that we found were installed. A handler that calls the one before it comes here again. */
static void on_fault(unsigned count, int number, siginfo_t *info, void *context)
{
    const void *frame = __builtin_frame_address(0);
    bool again = serving.context == context && (uintptr_t)frame < (uintptr_t)serving.frame;
    struct fault fault;
    int saved_errno = errno;

    if (!again) {
        serving.context = context;
        serving.frame = frame;
        serving.left = FOUND_MAX;
        if (info->si_code > 0) {
            describe(info, context, &fault);
            fault_look_at(&fault);
        }
    }
    if (count < serving.left)
        serving.left = count;
    fault_pass_on(serving.left ? &found[--serving.left] : NULL, number, info, context);
    if (!again)
        serving.context = NULL;
    errno = saved_errno;
}

/* The function that is installed in front of found[level]. */
#define ENTRY(level)                                                                               \
    static void on_fault_##level(int number, siginfo_t *info, void *context)                       \
    {                                                                                              \
        on_fault((level) + 1, number, info, context);                                              \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)

static void (*const entries[FOUND_MAX])(int, siginfo_t *, void *) = {
    on_fault_0, on_fault_1, on_fault_2, on_fault_3, on_fault_4, on_fault_5, on_fault_6, on_fault_7};

/* Returns whether the handler is ours, and then forgets those that we found after it was installed,
 * because the program has removed them. */
static bool fault_is_ours(const struct sigaction *action)
{
    for (unsigned level = 0; level < FOUND_MAX; level++) {
        if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == entries[level]) {
            found_count = level + 1;
            return true;
        }
    }
    return false;
}

/*
 * Returns the level of a handler that was found now. One that was found before keeps its level, so
 * a program that installs and removes a handler often does not use up the levels. If they are all
 * in use, the oldest handler is forgotten.
 */
static unsigned level_for(const struct sigaction *action)
{
    unsigned level = 0;

    while (level < found_count && (found[level].sa_sigaction != action->sa_sigaction ||
                                   found[level].sa_flags != action->sa_flags))
        level++;
    if (level < FOUND_MAX)
        return level;
    for (unsigned i = 1; i < FOUND_MAX; i++)
        found[i - 1] = found[i];
    return FOUND_MAX - 1;
}

void fault_handler_watch(void (*look)(const struct fault *fault))
{
    struct sigaction present, ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    unsigned level;

    if (found_count && os_calls_are_few())
        return;
    if (sigaction(SIGSEGV, NULL, &present) != 0 || fault_is_ours(&present))
        return;
    level = level_for(&present);
    found[level] = present;
    found_count = level + 1;
    fault_look_at = look;
    ours.sa_sigaction = entries[level];
    ours.sa_mask = present.sa_mask;
    ours.sa_flags |= present.sa_flags & (SA_NODEFER | SA_RESTART);
    sigaction(SIGSEGV, &ours, NULL);
}
