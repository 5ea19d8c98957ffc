/* SPDX-License-Identifier: MIT */
/* A section of Prudence, and a deferred free. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "version.h"

static struct prudence_cache *cache;
static struct version *current;

static void start(void)
{
    cache = prudence_cache_create("versions", sizeof(struct version), NULL);
    if (!cache)
        abort();
}

static inline bool look(uint64_t *number)
{
    bool whole;

    prudence_read_lock();
    whole = version_get(prudence_dereference(current), number);
    prudence_read_unlock();
    return whole;
}

static inline void replace(uint64_t number)
{
    struct version *fresh = prudence_cache_alloc(cache), *old;

    if (!fresh)
        abort();
    version_set(fresh, number);
    old = __atomic_exchange_n(&current, fresh, __ATOMIC_ACQ_REL);
    if (old)
        prudence_cache_free_deferred(cache, old);
}

#include "versions_family.h"

const struct subject subject_version_section = {"version-section",
                                                "read-side section, prudence_cache_free_deferred",
                                                .start = start, .fill = fill, .run = run};
