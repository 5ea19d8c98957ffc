/* SPDX-License-Identifier: MIT */
/* std::map under a std::shared_mutex: what a program has that does not use RCU. */
#include <map>
#include <mutex>
#include <shared_mutex>

extern "C" {
#include "subject.h"
}

static std::map<uint64_t, uint64_t> *map;
static std::shared_mutex lock;

static void start()
{
    map = new std::map<uint64_t, uint64_t>;
}

static void nothing()
{
}

static inline void read_begin()
{
    lock.lock_shared();
}

static inline void read_end()
{
    lock.unlock_shared();
}

static inline bool find(uint64_t key, uint64_t *value)
{
    const auto place = map->find(hash_of(key));

    if (place == map->end())
        return false;
    *value = place->second;
    return true;
}

static inline bool walk(uint64_t key, unsigned count, uint64_t *sum)
{
    for (auto place = map->lower_bound(hash_of(key)); count && place != map->end();
         ++place, count--)
        *sum += place->second;
    return !count;
}

static inline bool flip(uint64_t key)
{
    const std::unique_lock<std::shared_mutex> held(lock);

    if (map->erase(hash_of(key)))
        return false;
    map->emplace(hash_of(key), key);
    return true;
}

#define LOOP_WALKS
#include "loop.h"

extern "C" const struct subject subject_std_map;
const struct subject subject_std_map = {
    "std-map", "std::map under a std::shared_mutex", start, nothing, fill, nothing, run, nothing};
