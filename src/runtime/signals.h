/* SPDX-License-Identifier: MIT */
/* Signals that options choose (signals.c), and what is done at them. */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include <stdint.h>

/* By the place of each in the lists of the options; 0: none. */
#define SIGNAL_NAMES   "SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT"
#define SIGNAL_CHOICES 5

enum signal_action { SIGNAL_DUMP, SIGNAL_EXPORT, SIGNAL_PROFILE };
void signal_choose(enum signal_action action, uint64_t choice);

/* All async-signal-safe: dump.c, export.c, profile_dump.c. `choice`: of the signal that came. */
void dump_at_signal(uint64_t choice);
void export_at_signal(uint64_t choice);
void profile_at_signal(uint64_t choice);

#endif /* RUNTIME_SIGNALS_H */
