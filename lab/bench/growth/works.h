/* SPDX-License-Identifier: MIT */
/*
 * Work whose cost may grow with a number: the size of a block, the number of domains, slots,
 * callbacks, entries of a table, or threads. A work is started once with that number, and then its
 * threads repeat its turn.
 */
#ifndef BENCH_GROWTH_WORKS_H
#define BENCH_GROWTH_WORKS_H

#include <stdbool.h>
#include <stdint.h>

struct work {
    const char *name; /* of the axis */
    uint64_t most;    /* the largest number */
    uint64_t bytes;   /* that one of them takes about; there must be room for all */
    /* Returns false if so many cannot be had here. */
    bool (*start)(uint64_t number);
    /* Returns the number of operations that it made. `random` is the thread's state. */
    uint64_t (*turn)(uint64_t *random);
    bool is_crowd;   /* the number is that of the threads that take turns */
    bool has_helper; /* the library's thread does a part, so CPU time is that of the process */
};

extern const struct work works[];
extern const unsigned work_count;

#endif /* BENCH_GROWTH_WORKS_H */
