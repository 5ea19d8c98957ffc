/* SPDX-License-Identifier: MIT */
/* libcds' binary search tree without locks (F. Ellen and others, 2010). It is not balanced, and has no search for the nearest key. */
#include <cds/urcu/general_buffered.h>

#include <cds/container/ellen_bintree_map_rcu.h>

#include "keys_less.h"

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::ellen_bintree::traits {
    using less = key_less;
};

using map_type = cds::container::EllenBinTreeMap<rcu, bench_key, uint64_t, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return place_of(number);
}

static map_type *make_map(uint64_t)
{
    return new map_type;
}

#include "cds_family.h"

extern "C" const struct subject SUBJECT(ellen);
const struct subject SUBJECT(ellen) = CDS_SUBJECT("ellen-tree",
                                                  "libcds' EllenBinTreeMap, RCU general_buffered");
