/* SPDX-License-Identifier: MIT */
/* libcds' skip list. It has no search for the nearest key, so no walks from one. */
#include <cds/urcu/general_buffered.h>

#include <cds/container/skip_list_map_rcu.h>

#include "keys_less.h"

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::skip_list::traits {
    using less = key_less;
};

using map_type = cds::container::SkipListMap<rcu, bench_key, uint64_t, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return place_of(number);
}

static map_type *make_map(uint64_t)
{
    return new map_type;
}

#include "cds_family.h"

extern "C" const struct subject SUBJECT(skip_list);
const struct subject SUBJECT(skip_list) = CDS_SUBJECT("skip-list",
                                                      "libcds' SkipListMap, RCU general_buffered");
