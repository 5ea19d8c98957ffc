/* SPDX-License-Identifier: MIT */
/*
 * libcds' maps of RCU, as a template: the file that includes this has included the map's header
 * after <cds/urcu/general_buffered.h>, and defined
 *     map_type                              from keys to 64-bit values
 *     bench_key cds_key(number)
 *     map_type *make_map(size)              for `size` objects
 * RCU is general_buffered, which the documentation names as the fastest of those that need no
 * signal; the buffer has the default size. Lookups enter a section by themselves. Updates must not
 * be in one, so there is none around them here.
 */
#ifndef BENCH_STRUCTURES_CDS_FAMILY_H
#define BENCH_STRUCTURES_CDS_FAMILY_H

#include <cds/init.h>

static rcu *scheme; /* lives as long as the process */
static map_type *map;

static void start()
{
    cds::Initialize();
    scheme = new rcu;
}

static void attach()
{
    cds::threading::Manager::attachThread();
}

static void detach()
{
    cds::threading::Manager::detachThread();
}

static inline void read_begin()
{
}

static inline void read_end()
{
}

/* Function object that a map calls with an item, or with a key and a value. */
struct take_value {
    uint64_t *value;

    template <typename item> void operator()(item &found) const
    {
        *value = found.second;
    }
    template <typename key, typename mapped> void operator()(key &, mapped &found) const
    {
        *value = found;
    }
};

static inline bool find(uint64_t number, uint64_t *value)
{
    return map->find(cds_key(number), take_value{value});
}

static inline bool flip(uint64_t number)
{
    const bench_key key = cds_key(number);

    return !map->erase(key) && map->insert(key, number);
}

#include "loop.h"

static void make_and_fill(uint64_t size)
{
    map = make_map(size);
    fill(size);
}

#define CDS_SUBJECT(name, origin)                                                                  \
    {                                                                                              \
        name, origin, start, attach, make_and_fill, nullptr, run, detach                           \
    }

#endif /* BENCH_STRUCTURES_CDS_FAMILY_H */
