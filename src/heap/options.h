/* SPDX-License-Identifier: MIT */
/* Options that the start of the process looks at (process.c). */
#ifndef HEAP_OPTIONS_H
#define HEAP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

extern bool option_rseq, option_membarrier;

/* Whether libprudence-malloc drops RTLD_DEEPBIND (preload/deep_binding.c). Atomic. */
extern bool option_drop_deepbind;

/* Short-term memory (scm/): how far ahead a date may be; whether a tick frees all that has expired, or
 * every call a little of it; whether what has expired is deferred, for readers that still hold it.
 * Atomic. */
#define SCM_EXTENSION_MOST (UINT32_C(1) << 20)
extern uint32_t option_scm_max_extension;
extern bool option_scm_eager, option_scm_deferred;

/* exit_stats.c: whether statistics are printed at exit. */
void exit_stats_set(bool wanted);

#endif /* HEAP_OPTIONS_H */
