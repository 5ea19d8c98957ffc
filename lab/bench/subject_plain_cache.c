/* SPDX-License-Identifier: MIT */
/* Prudence's slab caches as a plain allocator: prudence_cache_alloc and prudence_cache_free. */
#include "prudence_pool.h"

static const struct operations plain_cache_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = discard,
    .discard = discard,
    .retire_timed = discard,
    .read_lock = prudence_read_lock,
    .read_unlock = prudence_read_unlock,
};

FAMILY_LOOPS(plain_cache)

const struct family plain_cache_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .report = prudence_report,
    FAMILY_MEMBERS(plain_cache),
};
