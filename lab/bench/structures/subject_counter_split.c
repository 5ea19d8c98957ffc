/* SPDX-License-Identifier: MIT */
/* <prudence/counter.h>: a number for each CPU. */
#include <prudence/counter.h>

#include <stdlib.h>

static struct prudence_counter *counter;

static void start(void)
{
    counter = prudence_counter_create();
    if (!counter)
        abort();
}

static inline void add(int64_t number)
{
    prudence_counter_add(counter, number);
}

static inline int64_t sum(void)
{
    return prudence_counter_sum(counter);
}

#include "counters_family.h"

const struct subject subject_counter_split = {"counter-split",
                                              "prudence_counter, a number for each CPU",
                                              .start = start, .fill = fill, .run = run};
