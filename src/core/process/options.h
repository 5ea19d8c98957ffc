/* SPDX-License-Identifier: MIT */
/* Options (options.c), and those of the core that only this layer or libprudence-malloc reads. */
#ifndef PROCESS_OPTIONS_H
#define PROCESS_OPTIONS_H

#include "process/option.h"

extern const struct option core_options[];

/* Sets the options of PRUDENCE_OPTIONS. Called at the start of the process. */
void options_read_environment(void);
extern bool options_environment_is_read; /* set at start, when there is one thread */

/* Prints a line for each option. Returns false if there is a value. */
bool options_print(const char *value);

/* Make fork wait until no thread sets an option. */
void options_fork_prepare(void);
void options_fork_done(void);

extern bool option_rseq, option_slices, option_membarrier;

/* Set if libprudence-malloc drops RTLD_DEEPBIND (preload/deep_binding.c). Atomic. */
extern bool option_drop_deepbind;

#endif /* PROCESS_OPTIONS_H */
