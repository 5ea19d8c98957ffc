/* SPDX-License-Identifier: MIT */
/* libcds' skip list of RCU (general_buffered, its fastest). It has no search for the nearest key, so no walks from one. */
#include <cds/init.h>
#include <cds/urcu/general_buffered.h>
#include <cds/container/skip_list_map_rcu.h>

extern "C" {
#include "subject.h"
}

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::skip_list::traits {
    using less = std::less<uint64_t>;
};

using skip_list = cds::container::SkipListMap<rcu, uint64_t, uint64_t, traits>;

static rcu *scheme; /* lives as long as the process */
static skip_list *map;

static void start()
{
    cds::Initialize();
    scheme = new rcu;
    cds::threading::Manager::attachThread();
    map = new skip_list;
    cds::threading::Manager::detachThread();
}

static void attach()
{
    cds::threading::Manager::attachThread();
}

static void detach()
{
    cds::threading::Manager::detachThread();
}

static void nothing()
{
}

static inline void read_begin()
{
    rcu::access_lock();
}

static inline void read_end()
{
    rcu::access_unlock();
}

static inline bool find(uint64_t key, uint64_t *value)
{
    return map->find(hash_of(key), [value](const auto &item) { *value = item.second; });
}

/* Outside of a section, as its updates demand. */
static inline bool flip(uint64_t key)
{
    return !map->erase(hash_of(key)) && map->insert(hash_of(key), key);
}

#include "loop.h"

extern "C" const struct subject subject_skip_list;
const struct subject subject_skip_list = {
    "skip-list", "libcds' SkipListMap, RCU general_buffered", start, attach, fill, nothing, run,
    detach};
