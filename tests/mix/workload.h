/* SPDX-License-Identifier: MIT */
/* The work that prudence-mix does with a cache, and the counts. */
#ifndef BENCH_MIX_WORKLOAD_H
#define BENCH_MIX_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Batches of live objects that grow and shrink. A share of the released ones is deferred, and
 * the rest is freed. The first three are those of kernel/bench/mix.c. */
struct mix {
    const char *name;
    unsigned size;     /* bytes */
    unsigned live;     /* most objects that live at a time */
    unsigned burst;    /* allocated or released at once */
    unsigned deferred; /* of 100 that are released */
    /* of 100 allocated together, how many are not released together; 100: release any */
    unsigned stay;
};
extern const struct mix mixes[];
const char *mix_name(unsigned index);

struct run {
    const struct mix *mix;
    bool classic; /* callbacks free deferred objects */
    /* classic: steps between two batches of 10 callbacks; 0: all callbacks of a grace period are
     * called at the end */
    unsigned pace;
    bool preflush;        /* each time the CPU is idle, the idle helper runs a round */
    bool spares;          /* slab_spares_latent */
    uint64_t allocations; /* length of the run */
    uint32_t seed;
    uint64_t period; /* allocations and releases in a grace period */
    uint64_t idle;   /* steps between two idle times of the CPU; 0: never idle */
    unsigned cached; /* objects of the object cache; 0: the default, by demand */
};

/* Returns the counts, a new reference. Needs a separate process, because the library's options
 * belong to the process. */
json_t *run_mix(const void *run);

#endif /* BENCH_MIX_WORKLOAD_H */
