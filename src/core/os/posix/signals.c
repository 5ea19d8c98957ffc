/* SPDX-License-Identifier: MIT */
/* Handlers of ours that stand in front of the program's, if it has one. */
#include "posix.h"

/* SIG_DFL and SIG_IGN may come with SA_SIGINFO, too. Both members are one word. */
bool posix_signal_is_handled(const struct sigaction *action)
{
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* The program's handler relies on the blocked signals, perhaps also that its own is not, on system
 * calls that the signal ends, and on being called once. */
void posix_signal_stand_before(int number, posix_signal_handler *handler, int flags,
                               const struct sigaction *before)
{
    struct sigaction ours = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART | flags};

    if (posix_signal_is_handled(before)) {
        ours.sa_mask = before->sa_mask;
        ours.sa_flags &= ~(SA_RESTART | (int)SA_RESETHAND) | before->sa_flags;
        ours.sa_flags |= before->sa_flags & SA_NODEFER;
    } else {
        ours.sa_flags &= ~(int)SA_RESETHAND;
    }
    sigaction(number, &ours, NULL);
}

void posix_signal_pass_on(const struct sigaction *to, int number, siginfo_t *info, void *context)
{
    if (!posix_signal_is_handled(to))
        return;
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(number, info, context);
    else
        to->sa_handler(number);
}
