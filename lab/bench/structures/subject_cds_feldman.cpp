/* SPDX-License-Identifier: MIT */
/*
 * libcds' tree of arrays (S. Feldman and others, 2013). It knows keys by their hashes alone, which must differ: numbers only. Its first array
 * has as many slots as there are objects, or up to 16 times fewer: the bits of levels must add up to 64.
 */
#include <cds/urcu/general_buffered.h>

#include <cds/container/feldman_hashmap_rcu.h>

extern "C" {
#include "keys.h"
}

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::feldman_hashmap::traits {
    using item_counter = cds::atomicity::cache_friendly_item_counter;
};

using map_type = cds::container::FeldmanHashMap<rcu, bench_key, uint64_t, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return hash_of(number);
}

#define ARRAY_BITS 4

static map_type *make_map(uint64_t size)
{
    const unsigned bits = 63 - (unsigned)__builtin_clzll(size);

    return new map_type(bits / ARRAY_BITS * ARRAY_BITS, ARRAY_BITS);
}

#include "cds_family.h"

extern "C" const struct subject subject_cds_feldman;
const struct subject subject_cds_feldman =
    CDS_SUBJECT("cds-feldman", "libcds' FeldmanHashMap, RCU general_buffered");
