/* SPDX-License-Identifier: MIT */
/*
 * Signals that options choose: on the signal of `dump` the process writes a summary of the memory
 * that it holds, and on `profile_signal` it writes its profile.
 *
 * Setting the option installs our handler before the program's handler, if there is one, and ours
 * passes the signal on. (The other handler may belong to another copy of the library.) A handler
 * that the program installs later replaces ours. The signal may come in any thread and at any
 * place. One thread at a time sets options (options.c); two options may choose the same signal.
 */
#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "observe/signals.h"
#include "os/os.h"
#include "posix.h"

/* The handler before which ours is installed. Ours may still run in some thread when it is removed
 * and installed before another one, so ours reads only single words: one of the two functions, or
 * none. */
static struct {
    int number;
    struct sigaction before; /* owned by the thread that sets options */
    posix_signal_handler *informed;
    void (*plain)(int number);
} signals[SIGNAL_CHOICES] = {{.number = 0},
                             {.number = SIGUSR1},
                             {.number = SIGUSR2},
                             {.number = SIGHUP},
                             {.number = SIGQUIT}};

static void (*const actions[])(uint64_t choice) = {
    [SIGNAL_DUMP] = dump_at_signal, [SIGNAL_PROFILE] = profile_dump_at_signal};
#define ACTIONS (sizeof actions / sizeof actions[0])

static uint64_t chosen[ACTIONS]; /* chosen signal of each action; atomic */

/* Stores the new function before clearing the other one. */
static void note_before(uint64_t choice)
{
    const struct sigaction *before = &signals[choice].before;
    bool handled = posix_signal_is_handled(before);

    if (handled && before->sa_flags & SA_SIGINFO) {
        store_release(&signals[choice].informed, before->sa_sigaction);
        store_release(&signals[choice].plain, NULL);
    } else {
        store_release(&signals[choice].plain, handled ? before->sa_handler : NULL);
        store_release(&signals[choice].informed, NULL);
    }
}

static void signal_pass_on(uint64_t choice, siginfo_t *info, void *context)
{
    int number = signals[choice].number;
    posix_signal_handler *informed = load_acquire(&signals[choice].informed);
    void (*plain)(int number) = load_acquire(&signals[choice].plain);

    if (!informed && !plain) /* `informed` was just stored, or there is no handler */
        informed = load_acquire(&signals[choice].informed);
    if (informed)
        informed(number, info, context);
    else if (plain)
        plain(number);
}

static void signal_arrives(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    for (unsigned i = 1; i < SIGNAL_CHOICES; i++) {
        if (signals[i].number != number)
            continue;
        for (unsigned action = 0; action < ACTIONS; action++)
            if (load_relaxed(&chosen[action]) == i)
                actions[action](i);
        signal_pass_on(i, info, context);
    }
    errno = saved_errno;
}

static bool signal_is_ours(int number)
{
    struct sigaction present;

    return sigaction(number, NULL, &present) == 0 && present.sa_flags & SA_SIGINFO &&
           present.sa_sigaction == signal_arrives;
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
    if (choice && !is_chosen(choice) && signal_is_ours(signals[choice].number))
        sigaction(signals[choice].number, &signals[choice].before, NULL);
}

/* Installs our handler, with SA_ONSTACK because Go requires the thread's alternate stack. That may
 * be too small for the dynamic linker, which saves all vector registers to bind a function at its
 * first call. SA_RESETHAND takes effect only if the program's handler has the flag, so the next
 * signal may end the process. */
static void signal_take(uint64_t choice)
{
    int number = signals[choice].number;

    if (!choice || signal_is_ours(number))
        return;
    os_memory_allowed(); /* binds the functions that the deepest call of a handler needs */
    sigaction(number, NULL, &signals[choice].before);
    note_before(choice);
    posix_signal_stand_before(number, signal_arrives, SA_ONSTACK | (int)SA_RESETHAND,
                              &signals[choice].before);
}

void signal_choose(enum signal_action action, uint64_t choice)
{
    uint64_t before = load_relaxed(&chosen[action]);

    signal_take(choice);
    store_relaxed(&chosen[action], choice);
    if (choice != before)
        signal_give_back(before);
}
