/* SPDX-License-Identifier: MIT */
/* A single number under a spin lock. */
#include <stdint.h>

#include "spin_lock.h"

static struct {
    struct spin_lock lock;
    int64_t number; /* under lock */
} __attribute__((aligned(128))) counter;

static inline void add(int64_t number)
{
    spin_lock(&counter.lock);
    counter.number += number;
    spin_unlock(&counter.lock);
}

static inline int64_t sum(void)
{
    int64_t seen;

    spin_lock(&counter.lock);
    seen = counter.number;
    spin_unlock(&counter.lock);
    return seen;
}

#include "counters_family.h"

const struct subject subject_counter_spin = {"counter-spin", "a single number under a spin lock",
                                             .fill = fill, .run = run};
