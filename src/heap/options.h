/* SPDX-License-Identifier: MIT */
/* Options that the start of the process looks at. */
#ifndef HEAP_OPTIONS_H
#define HEAP_OPTIONS_H

#include <stdbool.h>

extern bool option_rseq, option_membarrier;

/* process.c: after one of the options of the start was changed, before any cache is made. */
void process_apply_start_options(void);

#endif /* HEAP_OPTIONS_H */
