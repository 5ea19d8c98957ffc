/* SPDX-License-Identifier: MIT */
/* Options (options.c), and those that only this layer, or libprudence-malloc, looks at. */
#ifndef RUNTIME_OPTIONS_H
#define RUNTIME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* At the start of the process: those of PRUDENCE_OPTIONS. */
void options_read_environment(void);

/* Fork waits until no thread sets an option. */
void options_fork_prepare(void);
void options_fork_done(void);

extern bool option_rseq, option_slices, option_membarrier;

/* Whether libprudence-malloc drops RTLD_DEEPBIND (preload/deep_binding.c). Atomic. */
extern bool option_drop_deepbind;

/* exit_stats.c: whether statistics are printed at exit. */
void exit_stats_set(bool wanted);

/* dump.c. "": standard error. False: it is too long, or there is no memory. */
bool dump_set_file(const char *path);

/* profile_dump.c; the same. "": nothing is written at exit. */
bool profile_set_file(const char *path);

#endif /* RUNTIME_OPTIONS_H */
