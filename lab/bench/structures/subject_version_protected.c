/* SPDX-License-Identifier: MIT */
/* A hazard pointer of Prudence, and a deferred free. */
#include <prudence/hazard.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "version.h"

static struct prudence_cache *cache;
static struct version *current;
static __thread struct prudence_hazard *hazard;

static void start(void)
{
    struct prudence_cache_attr attr = {
        .size = sizeof attr,
        .domain = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL)};

    cache = prudence_cache_create("versions", sizeof(struct version), &attr);
    if (!attr.domain || !cache)
        abort();
}

/* The slot goes back when the thread ends. */
static void thread_start(void)
{
    hazard = prudence_hazard_acquire();
    if (!hazard)
        abort();
}

static inline bool look(uint64_t *number)
{
    const struct version *seen = prudence_hazard_protect(hazard, (void **)&current);
    bool whole = version_get(seen, number);

    prudence_hazard_reset(hazard);
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

const struct subject subject_version_protected = {
    "version-protected", "hazard pointer, prudence_cache_free_deferred",
    .start = start,      .thread_start = thread_start,
    .fill = fill,        .run = run};
