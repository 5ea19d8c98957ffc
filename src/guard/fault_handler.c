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
#include "posix.h"

#define FOUND_MAX 9 /* handlers that we stepped in front of: the first, and a ring of the last */
#define RING      (FOUND_MAX - 1)

static void (*fault_look_at)(const struct fault *fault);
static struct sigaction found[FOUND_MAX]; /* found[0] is the first, the others are the ring */
static unsigned found_count;
static unsigned ring_begin = 1; /* place of the oldest in the ring */
static bool watching;           /* atomic: a thread steps in front of a handler */

static __thread struct {
    const void *context, *frame;
    struct fault fault;
    unsigned left; /* handlers that this fault may still call: the oldest of `found` */
} serving;

/* Returns the number of handlers from the oldest one up to that at a place in `found`. */
static unsigned count_up_to(unsigned place)
{
    return place ? 2 + (place + RING - ring_begin) % RING : 1;
}

/* Returns the place of the last of the oldest `count` handlers, which is not 0. */
static unsigned place_of(unsigned count)
{
    return count > 1 ? 1 + (ring_begin - 1 + count - 2) % RING : 0;
}

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

/* A handler that left by siglongjmp was the last for its fault. A further fault may have the same
 * context, on an alternate stack. */
static bool is_further_entry(const void *context, const void *frame, const struct fault *fault)
{
    return serving.context == context && (uintptr_t)frame < (uintptr_t)serving.frame &&
           serving.fault.address == fault->address && serving.fault.code == fault->code;
}

/* Examines a fault, and lets the signal take effect as if only the handlers up to that at `place`
 * were installed. A handler that calls the one before it comes here again. */
static void on_fault(unsigned place, int number, siginfo_t *info, void *context)
{
    const void *frame = __builtin_frame_address(0);
    unsigned count = count_up_to(place);
    struct fault fault;
    int saved_errno = errno;
    bool again;

    describe(info, context, &fault);
    again = is_further_entry(context, frame, &fault);
    if (!again) {
        serving.context = context;
        serving.frame = frame;
        serving.fault = fault;
        serving.left = FOUND_MAX;
        if (info->si_code > 0)
            fault_look_at(&fault);
    }
    if (count < serving.left)
        serving.left = count;
    fault_pass_on(serving.left ? &found[place_of(serving.left--)] : NULL, number, info, context);
    if (!again)
        serving.context = NULL;
    errno = saved_errno;
}

/* The function that is installed in front of found[place]. */
#define ENTRY(place)                                                                               \
    static void on_fault_##place(int number, siginfo_t *info, void *context)                       \
    {                                                                                              \
        on_fault(place, number, info, context);                                                    \
    }
ENTRY(0)
ENTRY(1)
ENTRY(2)
ENTRY(3)
ENTRY(4)
ENTRY(5)
ENTRY(6)
ENTRY(7)
ENTRY(8)

static void (*const entries[FOUND_MAX])(int, siginfo_t *, void *) = {
    on_fault_0, on_fault_1, on_fault_2, on_fault_3, on_fault_4,
    on_fault_5, on_fault_6, on_fault_7, on_fault_8};

/* Returns whether the handler is ours, and then forgets those that we found after it was installed,
 * because the program has removed them. */
static bool fault_is_ours(const struct sigaction *action)
{
    for (unsigned place = 0; place < FOUND_MAX; place++) {
        if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == entries[place]) {
            found_count = count_up_to(place);
            return true;
        }
    }
    return false;
}

/* Returns whether the program has put the newest handler in front of us once more. */
static bool is_newest(const struct sigaction *action)
{
    const struct sigaction *newest = &found[place_of(found_count)];

    return newest->sa_sigaction == action->sa_sigaction && newest->sa_flags == action->sa_flags;
}

/* Returns the place of a handler that was found now. If there is none, the oldest handler in the
 * ring is forgotten; all others keep their places, which the program may have saved. */
static unsigned handler_place(const struct sigaction *action)
{
    if (found_count && is_newest(action))
        return place_of(found_count);
    if (found_count < FOUND_MAX)
        found_count++;
    else
        ring_begin = ring_begin % RING + 1;
    return place_of(found_count);
}

static void step_in_front(void (*look)(const struct fault *fault))
{
    struct sigaction present;
    unsigned place;

    if (sigaction(SIGSEGV, NULL, &present) != 0 || fault_is_ours(&present))
        return;
    place = handler_place(&present);
    found[place] = present;
    fault_look_at = look;
    posix_signal_stand_before(SIGSEGV, entries[place], SA_ONSTACK, &present);
}

/* No lock: the program may have replaced sigaction by a function that takes locks and allocates.
 * A thread that comes in that time leaves its handler to the next call. */
void fault_handler_watch(void (*look)(const struct fault *fault))
{
    if (exchange_acquire(&watching, true))
        return;
    if (!found_count || !os_calls_are_few())
        step_in_front(look);
    store_release(&watching, false);
}

void fault_handler_fork_child(void)
{
    store_relaxed(&watching, false);
}
