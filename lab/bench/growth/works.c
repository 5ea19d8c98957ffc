/* SPDX-License-Identifier: MIT */
/* All that a work uses stays until the process ends. Only `threads` has several threads, which
 * share nothing. */
#include "works.h"

#include <stdlib.h>
#include <string.h>

#include <prudence/call.h>
#include <prudence/hash_values.h>
#include <prudence/hazard.h>
#include <prudence/map_values.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include "random.h"

#define SLICE      256 /* operations of a turn, */
#define BLOCK_SIZE 64  /* and bytes of a block, if the number is not their size */

static uint64_t number_of_things;

static uint64_t draw(uint64_t *random)
{
    return below(next_random(random), number_of_things);
}

static uint64_t pairs_of(size_t size)
{
    for (unsigned i = 0; i < SLICE; i++) {
        volatile char *block = prudence_malloc(size);

        if (!block)
            abort();
        *block = 1;
        prudence_free((void *)block);
    }
    return SLICE;
}

/* ---------------------------------------------------------------------- blocks and threads */

static bool remember(uint64_t number)
{
    number_of_things = number;
    return true;
}

static uint64_t block_turn(uint64_t *random)
{
    (void)random;
    return pairs_of(number_of_things);
}

static uint64_t thread_turn(uint64_t *random)
{
    (void)random;
    return pairs_of(BLOCK_SIZE);
}

/* -------------------------------------------------------------------- domains and their caches */

static struct prudence_cache **caches;

static struct prudence_cache *cache_in(struct prudence_domain *domain)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};

    return domain ? prudence_cache_create("growth", BLOCK_SIZE, &attr) : NULL;
}

static uint64_t defer_to(struct prudence_cache *cache)
{
    volatile char *object = prudence_cache_alloc(cache);

    if (!object)
        abort();
    *object = 1;
    prudence_cache_free_deferred(cache, (void *)object);
    return 1;
}

/* Each cache has had its first slab before it is measured. */
static bool start_domains(uint64_t number)
{
    caches = calloc(number, sizeof *caches);
    for (uint64_t i = 0; i < number; i++) {
        caches[i] = cache_in(prudence_domain_create("growth", PRUDENCE_DOMAIN_MEMB, NULL));
        if (!caches[i])
            return false;
        defer_to(caches[i]);
    }
    return remember(number);
}

static uint64_t domain_turn(uint64_t *random)
{
    uint64_t count = 0;

    while (count < SLICE)
        count += defer_to(caches[draw(random)]);
    return count;
}

/* --------------------------------------------------------------------------------- hazard slots */

/* Each slot names an object that stays. */
static bool start_slots(uint64_t number)
{
    static void *linked;
    struct prudence_hazard *slot;

    caches = calloc(1, sizeof *caches);
    *caches = cache_in(prudence_domain_create("growth", PRUDENCE_DOMAIN_HAZARD, NULL));
    if (!*caches)
        return false;
    for (uint64_t i = 0; i < number; i++) {
        linked = prudence_cache_alloc(*caches);
        slot = prudence_hazard_acquire();
        if (!linked || !slot)
            return false;
        prudence_hazard_protect(slot, &linked);
    }
    return remember(1);
}

/* ------------------------------------------------------------------------------------ callbacks */

static struct prudence_head *heads;

static bool start_callbacks(uint64_t number)
{
    heads = calloc(number, sizeof *heads);
    return heads && remember(number);
}

static void called(struct prudence_head *head)
{
    head->func = NULL;
}

/* All wait at once, because the section that holds them back ends after the last. */
static uint64_t callback_turn(uint64_t *random)
{
    (void)random;
    prudence_read_lock();
    for (uint64_t i = 0; i < number_of_things; i++)
        prudence_call(&heads[i], called);
    prudence_read_unlock();
    if (prudence_barrier())
        abort();
    return number_of_things;
}

/* --------------------------------------------------------------------------------------- tables */

/* An entry is found, erased and added again in a turn of a table. */
#define TABLE_TURN(find, erase, add)                                                               \
    for (unsigned i = 0; i < SLICE; i++) {                                                         \
        const uint64_t key = draw(random);                                                         \
                                                                                                   \
        prudence_read_lock();                                                                      \
        if (!(find))                                                                               \
            abort();                                                                               \
        prudence_read_unlock();                                                                    \
        if ((erase) || (add))                                                                      \
            abort();                                                                               \
    }                                                                                              \
    return SLICE

static void *value_of(uint64_t key)
{
    return (void *)(uintptr_t)(key + 1);
}

static struct prudence_hash_values *hash;

static bool start_hash(uint64_t number)
{
    hash = prudence_hash_values_create("growth", NULL);
    for (uint64_t key = 0; hash && key < number; key++) {
        if (prudence_hash_values_add(hash, key, value_of(key), NULL))
            return false;
    }
    return hash && remember(number);
}

static uint64_t hash_turn(uint64_t *random)
{
    TABLE_TURN(prudence_hash_values_get(hash, key), prudence_hash_values_erase(hash, key, NULL),
               prudence_hash_values_add(hash, key, value_of(key), NULL));
}

static struct prudence_map_values *map;

static bool start_map(uint64_t number)
{
    map = prudence_map_values_create("growth", NULL);
    for (uint64_t key = 0; map && key < number; key++) {
        if (prudence_map_values_add(map, key, value_of(key), NULL))
            return false;
    }
    return map && remember(number);
}

static uint64_t map_turn(uint64_t *random)
{
    TABLE_TURN(prudence_map_values_get(map, key), prudence_map_values_erase(map, key, NULL),
               prudence_map_values_add(map, key, value_of(key), NULL));
}

static struct prudence_routes *routes;

#define ROUTE_BITS 24

/* Neighbours are far apart, because the bits of the key are in reverse order. */
static struct prudence_routes_prefix prefix_of(uint64_t key)
{
    struct prudence_routes_prefix prefix = {.length = ROUTE_BITS};

    for (unsigned bit = 0; bit < ROUTE_BITS; bit++) {
        if (key >> bit & 1)
            prefix.address[bit / 8] |= (unsigned char)(0x80 >> bit % 8);
    }
    return prefix;
}

static bool start_routes(uint64_t number)
{
    routes = prudence_routes_create("growth", NULL);
    for (uint64_t key = 0; routes && key < number; key++) {
        const struct prudence_routes_prefix prefix = prefix_of(key);

        if (prudence_routes_add(routes, &prefix, key + 1, NULL))
            return false;
    }
    return routes && remember(number);
}

static uint64_t routes_turn(uint64_t *random)
{
    struct prudence_routes_prefix prefix;

    TABLE_TURN((prefix = prefix_of(key), prudence_routes_lookup_ipv4(routes, prefix.address)),
               prudence_routes_erase(routes, &prefix, NULL),
               prudence_routes_add(routes, &prefix, key + 1, NULL));
}

const struct work works[] = {
    {"block-size", UINT64_C(1) << 40, 1, .start = remember, .turn = block_turn},
    {"domains", 100000, 16384, .start = start_domains, .turn = domain_turn},
    {"hazard-slots", 10000000, 128, .start = start_slots, .turn = domain_turn},
    {"callbacks", UINT64_C(1) << 32, 16, .start = start_callbacks, .turn = callback_turn,
     .has_helper = true},
    {"hash", UINT64_C(1) << 32, 64, .start = start_hash, .turn = hash_turn},
    {"map", UINT64_C(1) << 32, 64, .start = start_map, .turn = map_turn},
    {"routes", UINT64_C(1) << ROUTE_BITS, 64, .start = start_routes, .turn = routes_turn},
    {"threads", 1024, 1 << 17, .start = remember, .turn = thread_turn, .is_crowd = true},
};
const unsigned work_count = sizeof works / sizeof *works;
