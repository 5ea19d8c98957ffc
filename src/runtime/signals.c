/* SPDX-License-Identifier: MIT */
/*
 * Signals that options choose: at `dump` the process writes what holds its memory, at `export` it lets it be read, at
 * `profile_signal` it writes its profile.
 *
 * The handler is installed when the option is set, in front of the program's, if it has one, to which it passes the signal
 * on. (That may be another copy of the library.) A handler that the program installs later takes the signal over. The
 * signal may come in any thread and at any place. Options are set by one thread at a time (options.c); two options may choose
 * one signal.
 */
#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "posix.h"
#include "runtime/signals.h"

/* The handler that ours stands in front of. Ours may still run in some thread when it is given back and put in front of another one,
 * so what ours reads are single words: one of the two functions, or none. */
static struct {
    int number;
    struct sigaction before; /* of the thread that sets options */
    posix_signal_handler *informed;
    void (*plain)(int number);
} signals[SIGNAL_CHOICES] = {{.number = 0},
                             {.number = SIGUSR1},
                             {.number = SIGUSR2},
                             {.number = SIGHUP},
                             {.number = SIGQUIT}};

static void (*const actions[])(uint64_t choice) = {[SIGNAL_DUMP] = dump_at_signal,
                                                   [SIGNAL_EXPORT] = export_at_signal,
                                                   [SIGNAL_PROFILE] = profile_at_signal};
#define ACTIONS (sizeof actions / sizeof actions[0])

static uint64_t chosen[ACTIONS]; /* of signals; atomic */

/* The new one is stored before the other is cleared. */
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

static void pass_on(uint64_t choice, siginfo_t *info, void *context)
{
    int number = signals[choice].number;
    posix_signal_handler *informed = load_acquire(&signals[choice].informed);
    void (*plain)(int number) = load_acquire(&signals[choice].plain);

    if (!informed && !plain) /* it has just become one that is informed, or there is none */
        informed = load_acquire(&signals[choice].informed);
    if (informed)
        informed(number, info, context);
    else if (plain)
        plain(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    for (unsigned i = 1; i < SIGNAL_CHOICES; i++) {
        if (signals[i].number != number)
            continue;
        for (unsigned action = 0; action < ACTIONS; action++)
            if (load_relaxed(&chosen[action]) == i)
                actions[action](i);
        pass_on(i, info, context);
    }
    errno = saved_errno;
}

static bool is_ours(int number)
{
    struct sigaction present;

    return sigaction(number, NULL, &present) == 0 && present.sa_flags & SA_SIGINFO &&
           present.sa_sigaction == on_signal;
}

static bool is_chosen(uint64_t choice)
{
    for (unsigned action = 0; action < ACTIONS; action++)
        if (load_relaxed(&chosen[action]) == choice)
            return true;
    return false;
}

/* If another handler stands in front of ours, ours stays, and only passes the signal on. */
static void give_back(uint64_t choice)
{
    if (choice && !is_chosen(choice) && is_ours(signals[choice].number))
        sigaction(signals[choice].number, &signals[choice].before, NULL);
}

/* On the thread's other stack, if it has one: Go requires that. A handler for one signal may end the process by the next one. */
static void take(uint64_t choice)
{
    int number = signals[choice].number;

    if (!choice || is_ours(number))
        return;
    sigaction(number, NULL, &signals[choice].before);
    note_before(choice);
    posix_signal_stand_before(number, on_signal, SA_ONSTACK | (int)SA_RESETHAND,
                              &signals[choice].before);
}

void signal_choose(enum signal_action action, uint64_t choice)
{
    uint64_t before = load_relaxed(&chosen[action]);

    take(choice);
    store_relaxed(&chosen[action], choice);
    if (choice != before)
        give_back(before);
}
