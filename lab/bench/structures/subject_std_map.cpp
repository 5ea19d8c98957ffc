/* SPDX-License-Identifier: MIT */
/* std::map under a std::shared_mutex: the choice of a program that does not use RCU. */
#include <map>
#include <mutex>
#include <shared_mutex>

#include "keys_less.h"

using map_type = std::map<bench_key, uint64_t, key_less>;

static map_type *map;
static std::shared_mutex lock;

static void start()
{
    map = new map_type;
}

static inline void read_begin()
{
    lock.lock_shared();
}

static inline void read_end()
{
    lock.unlock_shared();
}

static inline bool find(uint64_t number, uint64_t *value)
{
    const auto place = map->find(place_of(number));

    if (place == map->end())
        return false;
    *value = place->second;
    return true;
}

static inline bool walk(uint64_t number, unsigned count, uint64_t *sum)
{
    for (auto place = map->lower_bound(place_of(number)); count && place != map->end();
         ++place, count--)
        *sum += place->second;
    return !count;
}

static inline bool flip(uint64_t number)
{
    const bench_key key = place_of(number);
    const std::unique_lock<std::shared_mutex> held(lock);

    if (map->erase(key))
        return false;
    map->emplace(key, number);
    return true;
}

#define LOOP_WALKS
#include "loop.h"

extern "C" const struct subject SUBJECT(std_map);
const struct subject SUBJECT(std_map) = {
    "std-map", "std::map under a std::shared_mutex", start, nullptr, fill, nullptr, run, nullptr};
