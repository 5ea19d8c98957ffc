/* SPDX-License-Identifier: MIT */
/* Counts the objects of a table whose writers run on many CPUs. Each group of CPUs has a counter,
 * and the counters follow the table in memory. */
#ifndef TABLES_OBJECT_COUNT_H
#define TABLES_OBJECT_COUNT_H

#include "base/atomic.h"
#include "os/os.h"

#define OBJECT_COUNTERS_MOST 16u

struct object_counter {
    int64_t objects; /* objects added less those removed here; atomic */
} __attribute__((aligned(CACHE_LINES_APART)));

/* Returns the number of counters, a power of two, so that a mask chooses one. */
static inline size_t object_counters(void)
{
    return min_size(round_up_to_power_of_two(os_cpu_count()), OBJECT_COUNTERS_MOST);
}

/* Returns the new value of this CPU's counter. */
static inline int64_t object_count_add(struct object_counter *counters, unsigned mask,
                                       int64_t objects)
{
    return add_relaxed(&counters[os_cpu_current() & mask].objects, objects) + objects;
}

/* Sums the counters, but not at one moment. The sum may be below 0 if it includes a removal but not
 * the addition; the function then returns 0. */
static inline uint64_t object_count_sum(const struct object_counter *counters, unsigned mask)
{
    int64_t objects = 0;

    for (unsigned i = 0; i <= mask; i++)
        objects += load_relaxed(&counters[i].objects);
    return objects > 0 ? (uint64_t)objects : 0;
}

#endif /* TABLES_OBJECT_COUNT_H */
