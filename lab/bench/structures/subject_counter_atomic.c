/* SPDX-License-Identifier: MIT */
/* A single number with atomic additions, which a split counter replaces. */
#include <stdint.h>

static struct {
    int64_t number;
} __attribute__((aligned(128))) counter;

static inline void add(int64_t number)
{
    __atomic_fetch_add(&counter.number, number, __ATOMIC_RELAXED);
}

static inline int64_t sum(void)
{
    return __atomic_load_n(&counter.number, __ATOMIC_RELAXED);
}

#include "counters_family.h"

const struct subject subject_counter_atomic = {"counter-atomic", "one number, atomic additions",
                                               .fill = fill, .run = run};
