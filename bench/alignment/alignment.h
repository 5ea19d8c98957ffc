/* SPDX-License-Identifier: MIT */
/* What prudence-alignment knows of the modules that hold the loops. */
#ifndef BENCH_ALIGNMENT_H
#define BENCH_ALIGNMENT_H

#include <stddef.h>

#define PLACES 8
#define PAIRS  1024 /* of one call of a loop */

struct aligned_loop {
    const char *name;
    void (*run)(void); /* PAIRS pairs */
};

/* Exported by each module: makes what its loops need for objects of that size; the loops, ended by
 * one without a name. */
typedef const struct aligned_loop *aligned_loops_function(size_t object_size);

#endif /* BENCH_ALIGNMENT_H */
