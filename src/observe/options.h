/* SPDX-License-Identifier: MIT */
/* Options of what is written of a process (options.c), and where they are kept. */
#ifndef OBSERVE_OPTIONS_H
#define OBSERVE_OPTIONS_H

#include "process/option.h"

extern const struct option observe_options[];

/* Chooses whether statistics are printed at exit (exit_stats.c). */
void exit_stats_set(uint64_t wanted);

/* Sets the file of dump.c; "" stands for standard error. Returns false if the path is too long or
 * there is no memory. */
bool dump_set_file(const char *path);

/* Sets the file of profile_dump.c likewise; with "", no profile is written at exit. */
bool profile_dump_set_file(const char *path);

#endif /* OBSERVE_OPTIONS_H */
