/* SPDX-License-Identifier: MIT */
/*
 * Signals that options choose: at `dump` the process writes what holds its memory, at `export` it lets it be read, at
 * `profile_signal` it writes its profile.
 *
 * The handler is installed when the option is set, in front of the program's, if it has one, to which it passes the signal
 * on. (That may be another copy of the library.) A handler that the program installs later takes the signal over. The
 * signal may come in any thread and at any place. Options are set by one thread at a time; two may choose one signal.
 */
#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "posix.h"
#include "runtime/signals.h"

static struct {
    int number;
    struct sigaction before; /* the handler that ours stands in front of */
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

static void on_signal(int number, siginfo_t *info, void *context)
{
    int saved_errno = errno;

    for (unsigned i = 1; i < SIGNAL_CHOICES; i++) {
        if (signals[i].number != number)
            continue;
        for (unsigned action = 0; action < ACTIONS; action++)
            if (load_relaxed(&chosen[action]) == i)
                actions[action](i);
        posix_signal_pass_on(&signals[i].before, number, info, context);
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
    if (choice && !is_ours(signals[choice].number))
        posix_signal_stand_before(signals[choice].number, on_signal, SA_ONSTACK | (int)SA_RESETHAND,
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
