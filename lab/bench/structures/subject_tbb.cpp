/* SPDX-License-Identifier: MIT */
/* TBB's concurrent_hash_map, with its own scalable allocator (the default, used where libtbbmalloc is there). Readers lock: a bucket while they
 * search, the item while they read it. */
#include <tbb/concurrent_hash_map.h>

extern "C" {
#include "keys.h"
}

struct key_compare {
    static size_t hash(const bench_key &key)
    {
        return key_hash(&key);
    }
    static bool equal(const bench_key &a, const bench_key &b)
    {
        return key_same(&a, &b);
    }
};

using map_type = tbb::concurrent_hash_map<bench_key, uint64_t, key_compare>;

static map_type *map;

static void start()
{
    map = new map_type;
}

static inline void read_begin()
{
}

static inline void read_end()
{
}

static inline bool find(uint64_t number, uint64_t *value)
{
    map_type::const_accessor item;

    if (!map->find(item, key_of(number)))
        return false;
    *value = item->second;
    return true;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = key_of(number);

    return !map->erase(key) && map->insert({key, number});
}

#include "loop.h"

extern "C" const struct subject SUBJECT(tbb);
const struct subject SUBJECT(tbb) = {
    "tbb", "TBB's concurrent_hash_map, with its scalable allocator",
    start, nullptr,
    fill,  nullptr,
    run,   nullptr};
