/* SPDX-License-Identifier: MIT */
/* Options that the start of the process looks at (process.c). */
#ifndef HEAP_OPTIONS_H
#define HEAP_OPTIONS_H

#include <stdbool.h>

extern bool option_rseq, option_membarrier;

#endif /* HEAP_OPTIONS_H */
