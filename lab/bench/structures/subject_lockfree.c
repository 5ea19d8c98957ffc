/* SPDX-License-Identifier: MIT */
/* <prudence/lockfree_hash.h>, with as many buckets as objects. */
#include <prudence/lockfree_hash.h>

#define FUNCTION(name) prudence_lockfree_hash_##name
static struct prudence_lockfree_hash *table;

#include "hash_family.h"

static void make_and_fill(uint64_t size)
{
    const struct prudence_lockfree_hash_attr attr = {.size = sizeof attr, .buckets = size};

    table = prudence_lockfree_hash_create("bench", &attr);
    if (!table)
        abort();
    fill(size);
}

const struct subject SUBJECT(lockfree) = {"lockfree",
                                          "prudence_lockfree_hash, its objects in a cache",
                                          .start = start, .fill = make_and_fill, .run = run};
