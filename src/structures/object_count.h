/* SPDX-License-Identifier: MIT */
/* The number of objects in a table whose writers run on many CPUs: a counter for some CPUs each, behind the table. */
#ifndef STRUCTURES_OBJECT_COUNT_H
#define STRUCTURES_OBJECT_COUNT_H

#include "base/atomic.h"
#include "os/os.h"

#define OBJECT_COUNTERS_MOST 16u

struct object_counter {
    int64_t objects; /* added less removed here; atomic */
} __attribute__((aligned(CACHE_LINES_APART)));

/* How many there are: a power of two, so that the mask of it chooses one. */
static inline size_t object_counters(void)
{
    return min_size(round_up_to_power_of_two(os_cpu_count()), OBJECT_COUNTERS_MOST);
}

/* Returns what this CPU's counter is then. */
static inline int64_t object_count_add(struct object_counter *counters, unsigned mask,
                                       int64_t objects)
{
    return add_relaxed(&counters[os_cpu_current() & mask].objects, objects) + objects;
}

/* The sum is not taken at one moment: one of a removal that was counted and an addition that was not may be below 0. */
static inline uint64_t object_count_sum(const struct object_counter *counters, unsigned mask)
{
    int64_t objects = 0;

    for (unsigned i = 0; i <= mask; i++)
        objects += load_relaxed(&counters[i].objects);
    return objects > 0 ? (uint64_t)objects : 0;
}

#endif /* STRUCTURES_OBJECT_COUNT_H */
