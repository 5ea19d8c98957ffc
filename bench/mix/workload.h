/* SPDX-License-Identifier: MIT */
/* What prudence-mix does to a cache, and what it counts. */
#ifndef BENCH_MIX_WORKLOAD_H
#define BENCH_MIX_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

/* Batches of live objects that grow and shrink, of which a share is deferred when it goes and the rest is freed. The
 * first three are those of kernel/bench/mix.c. */
struct mix {
    const char *name;
    unsigned size;     /* bytes */
    unsigned live;     /* objects that live at a time, at most */
    unsigned burst;    /* made or let go in one go */
    unsigned deferred; /* of 100 that go */
    unsigned stay;     /* of 100 that were made together, so many do not go together; 100: any go */
};
extern const struct mix mixes[];
const char *mix_name(unsigned index);

struct run {
    const struct mix *mix;
    bool classic;  /* callbacks free what is deferred */
    unsigned pace; /* of classic: steps between two batches of 10 callbacks; 0: a grace period's
                    * callbacks are all called when it ends */
    bool preflush; /* each time the CPU is idle, the idle helper has a round */
    bool spares;   /* slab_spares_latent */
    uint64_t allocations; /* how long it runs */
    uint32_t seed;
    uint64_t period; /* a grace period ends after so many allocations and releases */
    uint64_t idle;   /* and the CPU is idle after so many; 0: never */
    unsigned cached; /* objects of the object cache; 0: the default, by demand */
};

/* What it counted; a new reference. In a process of its own: the library's options are the process's. */
json_t *run_mix(const void *run);

#endif /* BENCH_MIX_WORKLOAD_H */
