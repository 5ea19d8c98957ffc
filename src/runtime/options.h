/* SPDX-License-Identifier: MIT */
/* Options (options.c), and those that only this layer or libprudence-malloc reads. */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Sets the options of PRUDENCE_OPTIONS. Called at the start of the process. */
void options_read_environment(void);

/* Make fork wait until no thread sets an option. */
void options_fork_prepare(void);
void options_fork_done(void);

extern bool option_rseq, option_slices, option_membarrier;

/* Set if libprudence-malloc drops RTLD_DEEPBIND (preload/deep_binding.c). Atomic. */
extern bool option_drop_deepbind;

/* Chooses whether statistics are printed at exit (exit_stats.c). */
void exit_stats_set(uint64_t wanted);

/* Sets the file of dump.c; "" stands for standard error. Returns false if the path is too long or
 * there is no memory. */
bool dump_set_file(const char *path);

/* Sets the file of profile_dump.c likewise; with "", no profile is written at exit. */
bool profile_dump_set_file(const char *path);

#endif /* RUNTIME_OPTIONS_H */
