/* SPDX-License-Identifier: MIT */
/* The sums of a profile, by calling place (see profile_sites.c). */
#ifndef OBSERVE_PROFILE_SITES_H
#define OBSERVE_PROFILE_SITES_H

#include "slab/cache.h"

enum site_role { SITE_ALLOCATES, SITE_DEFERS };

#define SITE_AGES 48 /* age ranges; range n has 2^n to 2^(n+1) - 1 ns, the last all longer ages */

/* Objects, in units of 1 / SAMPLING_UNIT, and whole bytes. */
struct site_sums {
    uint64_t objects, bytes;
};

/* A site. All sums are atomic, and estimates: each sample counts as many objects as it
 * represents. */
struct profile_site {
    struct profile_site *next; /* next in the bucket */
    uint64_t cache_number;
    uint32_t trace; /* number in the stack depot; 0 if unknown */
    enum site_role role;
    struct site_sums now;  /* live objects allocated here, or latent objects deferred here */
    struct site_sums ever; /* all objects allocated or deferred here */
    uint64_t
        age; /* ns, a double; sum of all ages, each until the object was freed, deferred or safe */
    uint64_t ages[SITE_AGES]; /* objects in each range */
    char cache[CACHE_NAME_SIZE];
};

#define SITE_BUCKETS ((size_t)1 << 12)
/* Lists of sites, by hash; atomic words, made by profile_sites_start(). Watchers read them. */
extern struct profile_site **profile_site_buckets;

/* Makes the table. Returns false without memory. */
bool profile_sites_start(void);

/* Returns the site of this call, or NULL without memory. `frame_address` is as for
 * os_trace_capture_from(), or NULL if unknown. */
struct profile_site *profile_site_here(enum site_role role, const struct prudence_cache *cache,
                                       const void *frame_address);

void profile_site_begins(struct profile_site *site, uint64_t objects, size_t size);
void profile_site_ends(struct profile_site *site, uint64_t objects, size_t size, uint64_t age);
/* Updates a site when a sampled object's size has changed. */
void profile_site_resized(struct profile_site *site, uint64_t objects, size_t before, size_t size);

/* Visits all sites; no locks, async-signal-safe. */
void profile_sites_visit(void (*visit)(const struct profile_site *site, void *data), void *data);

#endif /* OBSERVE_PROFILE_SITES_H */
