/* SPDX-License-Identifier: MIT */
/* libcds' table of Michael's lists (M. Michael, 2002). Its buckets are as many as objects, for good, as its constructor asks for. */
#include <cds/urcu/general_buffered.h>

#include <cds/container/michael_kvlist_rcu.h>
#include <cds/container/michael_map_rcu.h>

#include "keys_less.h"

using rcu = cds::urcu::gc<cds::urcu::general_buffered<>>;

struct list_traits : cds::container::michael_list::traits {
    using less = key_less;
};

using list_type = cds::container::MichaelKVList<rcu, bench_key, uint64_t, list_traits>;

struct traits : cds::container::michael_map::traits {
    struct hash {
        size_t operator()(const bench_key &key) const
        {
            return key_hash(&key);
        }
    };
};

using map_type = cds::container::MichaelHashMap<rcu, list_type, traits>;

static inline bench_key cds_key(uint64_t number)
{
    return key_of(number);
}

static map_type *make_map(uint64_t size)
{
    return new map_type(size, 1);
}

#include "cds_family.h"

extern "C" const struct subject SUBJECT(cds_michael);
const struct subject SUBJECT(cds_michael) =
    CDS_SUBJECT("cds-michael", "libcds' MichaelHashMap of a fixed size, RCU general_buffered");
