/* SPDX-License-Identifier: MIT */
/* The sums of a profile, by calling place (see profile_sites.c). */
#ifndef DEBUG_PROFILE_SITES_H
#define DEBUG_PROFILE_SITES_H

#include "slab/cache.h"

enum site_role { SITE_ALLOCATES, SITE_DEFERS };

#define SITE_AGES 48 /* ages: place n is of 2^n to 2^(n+1) - 1 ns, and the last of all above */

/* Objects in units of 1 / SAMPLING_UNIT, bytes whole. */
struct site_sums {
    uint64_t objects, bytes;
};

/* All sums are atomic, and estimates: each sample counts as often as what it stands for. */
struct profile_site {
    struct profile_site *next; /* in its bucket */
    uint64_t cache_number;
    uint32_t trace; /* in the stack depot; 0: unknown */
    enum site_role role;
    struct site_sums now;  /* live objects that it allocated; latent ones that it deferred */
    struct site_sums ever; /* all that it allocated or deferred */
    uint64_t
        age; /* a double: of all that were, each until it was freed or deferred, or safe; ns, added up */
    uint64_t ages[SITE_AGES]; /* objects */
    char cache[CACHE_NAME_SIZE];
};

/* Makes the table. False: no memory. */
bool profile_sites_start(void);

/* The site of this call; NULL: no memory. `frame_address`: of os_trace_capture_from(); NULL: it is not known. */
struct profile_site *profile_site_here(enum site_role role, const struct prudence_cache *cache,
                                       const void *frame_address);

void profile_site_begins(struct profile_site *site, uint64_t objects, size_t size);
void profile_site_ends(struct profile_site *site, uint64_t objects, size_t size, uint64_t age);
/* Its size has changed. */
void profile_site_resized(struct profile_site *site, uint64_t objects, size_t before, size_t size);

/* Visits all sites; no locks, async-signal-safe. */
void profile_sites_visit(void (*visit)(const struct profile_site *site, void *data), void *data);

#endif /* DEBUG_PROFILE_SITES_H */
