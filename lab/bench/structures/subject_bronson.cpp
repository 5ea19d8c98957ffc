/* SPDX-License-Identifier: MIT */
/* libcds' AVL tree with optimistic readers (N. Bronson and others, 2010). It has no search for the nearest key. */
#include <cds/urcu/general_buffered.h>

#include <cds/container/bronson_avltree_map_rcu.h>

#include "keys_less.h"

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::bronson_avltree::traits {
    using less = key_less;
};

using map_type = cds::container::BronsonAVLTreeMap<rcu, bench_key, uint64_t, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return place_of(number);
}

static map_type *make_map(uint64_t)
{
    return new map_type;
}

#include "cds_family.h"

extern "C" const struct subject SUBJECT(bronson);
const struct subject SUBJECT(bronson) =
    CDS_SUBJECT("bronson-tree", "libcds' BronsonAVLTreeMap, RCU general_buffered");
