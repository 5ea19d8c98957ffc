/* SPDX-License-Identifier: MIT */
/* libcds' split-ordered list (O. Shalev, N. Shavit, 2003), created for the number of objects to
 * come. Its counter of objects is the one that its documentation has against false sharing. */
#include <cds/urcu/general_buffered.h>

#include <cds/container/michael_list_rcu.h>
#include <cds/container/split_list_map_rcu.h>

#include "keys_less.h"

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct traits : cds::container::split_list::traits {
    using ordered_list = cds::container::michael_list_tag;
    using item_counter = cds::atomicity::cache_friendly_item_counter;
    struct hash {
        size_t operator()(const bench_key &key) const
        {
            return key_hash(&key);
        }
    };
    struct ordered_list_traits : cds::container::michael_list::traits {
        using less = key_less;
    };
};

using map_type = cds::container::SplitListMap<rcu, bench_key, uint64_t, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return key_of(number);
}

static map_type *make_map(uint64_t size)
{
    return new map_type(size, 1);
}

#include "cds_family.h"

extern "C" const struct subject SUBJECT(cds_split);
const struct subject SUBJECT(cds_split) = CDS_SUBJECT("cds-split",
                                                      "libcds' SplitListMap, RCU general_buffered");
