/* SPDX-License-Identifier: MIT */
/*
 * The sums of a profile. A site is a calling place (a trace of the stack depot), an action
 * (allocate or defer), and the cache acted on.
 *
 * There are no locks, so a signal handler can write a profile, and a thread can do so concurrently
 * with all others. Sites are never freed. A site is complete before compare-and-swap (release)
 * pushes it on a bucket's list, where others find it (acquire). Two threads may both push the same
 * site; readers add the two up. Sums change by atomic additions, which are relaxed because no other
 * data is read according to their values.
 */
#include "observe/profile_sites.h"

#include <string.h>

#include "guard/stack_depot.h"
#include "observe/sampling.h"
#include "os/os.h"

struct profile_site **profile_site_buckets;

bool profile_sites_start(void)
{
    if (!profile_site_buckets)
        profile_site_buckets = os_meta_alloc(SITE_BUCKETS * sizeof(struct profile_site *));
    return profile_site_buckets != NULL;
}

static struct profile_site **bucket_of(uint32_t trace, uint64_t cache_number, enum site_role role)
{
    uint64_t hash = (trace + cache_number * 31 + (uint64_t)role) * UINT64_C(0x9e3779b97f4a7c15);

    return &profile_site_buckets[hash >> 52];
}
_Static_assert(SITE_BUCKETS == (size_t)1 << (64 - 52), "a bucket is the upper bits of a hash");

static struct profile_site *profile_sites_find(struct profile_site **bucket, uint32_t trace,
                                               uint64_t cache_number, enum site_role role)
{
    struct profile_site *site = load_acquire(bucket);

    while (site &&
           (site->trace != trace || site->cache_number != cache_number || site->role != role))
        site = site->next;
    return site;
}

static struct profile_site *profile_sites_add(struct profile_site **bucket, uint32_t trace,
                                              const struct prudence_cache *cache,
                                              enum site_role role)
{
    struct profile_site *site = os_meta_alloc(sizeof *site);

    if (!site)
        return NULL;
    site->trace = trace;
    site->cache_number = cache->number;
    site->role = role;
    memcpy(site->cache, cache->name, sizeof site->cache);
    site->next = load_relaxed(bucket);
    while (!compare_exchange(bucket, &site->next, site))
        ;
    return site;
}

struct profile_site *profile_site_here(enum site_role role, const struct prudence_cache *cache,
                                       const void *frame_address)
{
    uint32_t trace = stack_depot_from(frame_address);
    struct profile_site **bucket = bucket_of(trace, cache->number, role);
    struct profile_site *site = profile_sites_find(bucket, trace, cache->number, role);

    return site ? site : profile_sites_add(bucket, trace, cache, role);
}

/* Rounds to whole bytes, which is exact enough, because a sample stands for `rate` bytes or
 * more. */
static uint64_t profile_sites_bytes_of(uint64_t objects, size_t size)
{
    return (uint64_t)((double)objects * (double)size / (double)SAMPLING_UNIT + 0.5);
}

void profile_site_begins(struct profile_site *site, uint64_t objects, size_t size)
{
    uint64_t bytes = profile_sites_bytes_of(objects, size);

    add_relaxed(&site->ever.objects, objects);
    add_relaxed(&site->ever.bytes, bytes);
    add_relaxed(&site->now.objects, objects);
    add_relaxed(&site->now.bytes, bytes);
}

static void add_age(uint64_t *sum, double age)
{
    uint64_t before = load_relaxed(sum), after;
    double total;

    do {
        memcpy(&total, &before, sizeof total);
        total += age;
        memcpy(&after, &total, sizeof after);
    } while (!compare_exchange(sum, &before, after));
}

static unsigned profile_sites_place_of(uint64_t age)
{
    unsigned place = 63 - (unsigned)__builtin_clzll(age | 1);

    return place < SITE_AGES ? place : SITE_AGES - 1;
}

void profile_site_ends(struct profile_site *site, uint64_t objects, size_t size, uint64_t age)
{
    sub_relaxed(&site->now.objects, objects);
    sub_relaxed(&site->now.bytes, profile_sites_bytes_of(objects, size));
    add_relaxed(&site->ages[profile_sites_place_of(age)], objects);
    add_age(&site->age, (double)objects / (double)SAMPLING_UNIT * (double)age);
}

void profile_site_resized(struct profile_site *site, uint64_t objects, size_t before, size_t size)
{
    add_relaxed(&site->now.bytes,
                profile_sites_bytes_of(objects, size) - profile_sites_bytes_of(objects, before));
}

void profile_sites_visit(void (*visit)(const struct profile_site *site, void *data), void *data)
{
    for (size_t i = 0; profile_site_buckets && i < SITE_BUCKETS; i++)
        for (const struct profile_site *site = load_acquire(&profile_site_buckets[i]); site;
             site = site->next)
            visit(site, data);
}
