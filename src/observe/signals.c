/* SPDX-License-Identifier: MIT */
/*
 * Signals that options choose: on the signal of `dump` the process writes a summary of the memory
 * that it holds, and on `profile_signal` it writes its profile.
 *
 * Setting the option installs our handler before the program's handler, if there is one, and ours
 * passes the signal on. (The other handler may belong to another copy of the library.) A handler
 * that the program installs later replaces ours. If the option is set again, ours is installed
 * before that handler, too, which may call the one before it, ours. So the handlers that were found
 * are a stack: our first entry for a signal calls the newest, and each further entry an older one.
 *
 * A program that removes its handler restores the one before it, which may be ours. We have one
 * function for each place in the stack, so the restored function says which of the handlers the
 * program has not removed. (Code of the others may be gone.)
 *
 * The signal may come in any thread and at any place. One thread at a time sets options
 * (options.c); two options may choose the same signal.
 */
#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "observe/signals.h"
#include "os/os.h"
#include "posix.h"

#define FOUND_MAX 4 /* when there are more, the newest but one is forgotten */

/* A handler before which ours was installed. Ours may still run in some thread when it is removed
 * and installed before another one, so ours reads only single words: one of the two functions, or
 * none. */
struct found {
    struct sigaction action; /* owned by the thread that sets options */
    posix_signal_handler *informed;
    void (*plain)(int number);
};

static struct {
    int number;
    unsigned count; /* in `found`, oldest first; 0: ours was removed, and found[0] is the last */
    struct found found[FOUND_MAX];
} signals[SIGNAL_CHOICES] = {{.number = 0},
                             {.number = SIGUSR1},
                             {.number = SIGUSR2},
                             {.number = SIGHUP},
                             {.number = SIGQUIT}};

static void (*const actions[])(uint64_t choice) = {
    [SIGNAL_DUMP] = dump_at_signal, [SIGNAL_PROFILE] = profile_dump_at_signal};
#define ACTIONS (sizeof actions / sizeof actions[0])

static uint64_t chosen[ACTIONS]; /* chosen signal of each action; atomic */

/* The signal that the thread's innermost handler of ours passes on. */
static __thread struct {
    uintptr_t frame, context; /* of the first entry; 0: none */
    unsigned left;            /* handlers that may still be called: the oldest of `found` */
} signal_passed;

/* Notes the handler as the newest, unless it is that already, and returns its place. Stores the new
 * function before clearing the other one. */
static unsigned note_before(uint64_t choice, const struct sigaction *before)
{
    unsigned count = signals[choice].count;
    struct found *found = signals[choice].found + count;
    bool handled = posix_signal_is_handled(before);

    if (count == FOUND_MAX || (count && found[-1].action.sa_sigaction == before->sa_sigaction))
        found--;
    found->action = *before;
    if (handled && before->sa_flags & SA_SIGINFO) {
        store_release(&found->informed, before->sa_sigaction);
        store_release(&found->plain, NULL);
    } else {
        store_release(&found->plain, handled ? before->sa_handler : NULL);
        store_release(&found->informed, NULL);
    }
    count = (unsigned)(found - signals[choice].found) + 1;
    /* Release: a handler that sees the count sees the functions. */
    store_release(&signals[choice].count, count);
    return count - 1;
}

/* Returns the number of handlers from the oldest one up to that at a place in `found`, without
 * those that were given back. */
static unsigned found_up_to(uint64_t choice, unsigned place)
{
    size_t count = max_size(load_acquire(&signals[choice].count), 1);

    return (unsigned)min_size(count, place + 1);
}

static void signal_pass_on(uint64_t choice, unsigned place, siginfo_t *info, void *context)
{
    int number = signals[choice].number;
    unsigned count = found_up_to(choice, place);
    const struct found *found;
    posix_signal_handler *informed;
    void (*plain)(int number);

    if (signal_passed.left > count)
        signal_passed.left = count;
    if (!signal_passed.left)
        return;
    found = &signals[choice].found[--signal_passed.left];
    informed = load_acquire(&found->informed);
    plain = load_acquire(&found->plain);
    if (!informed && !plain) /* `informed` was just stored, or there is no handler */
        informed = load_acquire(&found->informed);
    if (informed)
        informed(number, info, context);
    else if (plain)
        plain(number);
}

/* Notes an entry of our handler, and returns whether it is the first one for its signal. A further
 * entry lies deeper in the stack than the first one, and the system has put no other signal's
 * context between them. (Plain handlers pass on no context. After a handler that left by longjmp,
 * the next signal's frame and context both lie deeper, or neither does.) A signal that interrupts
 * this finds the context no older than the frame. */
static bool signal_enter(uintptr_t frame, uintptr_t context)
{
    if (frame < signal_passed.frame && !(frame < context && context < signal_passed.context))
        return false;
    signal_passed.context = context;
    compiler_barrier();
    signal_passed.frame = frame;
    signal_passed.left = FOUND_MAX;
    return true;
}

/* Acts, and passes the signal on as if only the handlers up to that at `place` were installed. */
static void signal_arrives(unsigned place, int number, siginfo_t *info, void *context)
{
    __typeof(signal_passed) outer = signal_passed;
    int saved_errno = errno;
    bool first = signal_enter((uintptr_t)__builtin_frame_address(0), (uintptr_t)context);

    for (unsigned i = 1; i < SIGNAL_CHOICES; i++) {
        if (signals[i].number != number)
            continue;
        for (unsigned action = 0; first && action < ACTIONS; action++)
            if (load_relaxed(&chosen[action]) == i)
                actions[action](i);
        signal_pass_on(i, place, info, context);
    }
    signal_passed.frame = outer.frame;
    compiler_barrier();
    signal_passed = outer;
    errno = saved_errno;
}

/* The function that is installed before the handler at a place in `found`. */
#define SIGNAL_ENTRY(place)                                                                        \
    static void signal_entry_##place(int number, siginfo_t *info, void *context)                   \
    {                                                                                              \
        signal_arrives(place, number, info, context);                                              \
    }
SIGNAL_ENTRY(0)
SIGNAL_ENTRY(1)
SIGNAL_ENTRY(2)
SIGNAL_ENTRY(3)

static posix_signal_handler *const signal_entries[FOUND_MAX] = {signal_entry_0, signal_entry_1,
                                                                signal_entry_2, signal_entry_3};

/* Returns whether the present handler is ours, and then forgets those that we found after it was
 * installed, because the program has removed them. */
static bool signal_is_ours(uint64_t choice)
{
    struct sigaction present;

    if (sigaction(signals[choice].number, NULL, &present) != 0)
        return false;
    for (unsigned place = 0; place < FOUND_MAX; place++) {
        if (present.sa_flags & SA_SIGINFO && present.sa_sigaction == signal_entries[place]) {
            store_release(&signals[choice].count, found_up_to(choice, place));
            return true;
        }
    }
    return false;
}

static bool is_chosen(uint64_t choice)
{
    for (unsigned action = 0; action < ACTIONS; action++)
        if (load_relaxed(&chosen[action]) == choice)
            return true;
    return false;
}

/* Restores the handler before ours. If another handler was installed since, ours stays and only
 * passes the signal on. */
static void signal_give_back(uint64_t choice)
{
    unsigned last;

    if (choice && !is_chosen(choice) && signal_is_ours(choice)) {
        last = signals[choice].count - 1;
        sigaction(signals[choice].number, &signals[choice].found[last].action, NULL);
        store_release(&signals[choice].count, last);
    }
}

/* Installs our handler, with SA_ONSTACK because Go requires the thread's alternate stack. That may
 * be too small for the dynamic linker, which saves all vector registers to bind a function at its
 * first call. SA_RESETHAND takes effect only if the program's handler has the flag, so the next
 * signal may end the process. */
static void signal_take(uint64_t choice)
{
    int number = signals[choice].number;
    struct sigaction before;
    unsigned place;

    if (!choice || signal_is_ours(choice))
        return;
    os_memory_allowed(); /* binds the functions that the deepest call of a handler needs */
    sigaction(number, NULL, &before);
    place = note_before(choice, &before);
    posix_signal_stand_before(number, signal_entries[place], SA_ONSTACK | (int)SA_RESETHAND,
                              &before);
}

void signal_choose(enum signal_action action, uint64_t choice)
{
    uint64_t before = load_relaxed(&chosen[action]);

    signal_take(choice);
    store_relaxed(&chosen[action], choice);
    if (choice != before)
        signal_give_back(before);
}
