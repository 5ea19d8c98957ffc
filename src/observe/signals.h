/* SPDX-License-Identifier: MIT */
/* Signals that options choose (signals.c), and their actions. */
#ifndef OBSERVE_SIGNALS_H
#define OBSERVE_SIGNALS_H

#include <stdint.h>

/* The signals, in the order of the choices of the options; choice 0 is none. */
#define SIGNAL_NAMES   "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT"
#define SIGNAL_CHOICES 5

enum signal_action { SIGNAL_DUMP, SIGNAL_PROFILE };
void signal_choose(enum signal_action action, uint64_t choice);

/* Actions, in dump.c and profile_dump.c; async-signal-safe. `choice` is the signal that
 * came. */
void dump_at_signal(uint64_t choice);
void profile_dump_at_signal(uint64_t choice);

#endif /* OBSERVE_SIGNALS_H */
