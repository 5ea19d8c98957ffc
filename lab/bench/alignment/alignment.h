/* SPDX-License-Identifier: MIT */
/* Interface between prudence-alignment and the modules that hold the loops. */
#ifndef BENCH_ALIGNMENT_H
#define BENCH_ALIGNMENT_H

#include <stddef.h>

#define PLACES 8
#define PAIRS  1024 /* pairs in one call of a loop */

struct aligned_loop {
    const char *name;
    void (*run)(void); /* makes PAIRS pairs */
};

/* Exported by each module. Prepares its loops for objects of that size, and returns them; the
 * last one has no name. */
typedef const struct aligned_loop *aligned_loops_function(size_t object_size);

#endif /* BENCH_ALIGNMENT_H */
