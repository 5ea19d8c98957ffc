/* SPDX-License-Identifier: MIT */
/* Prudence, with readers that name objects (<prudence/hazard.h>). */
#include <prudence/hazard.h>

#define POOL_DOMAIN hazards
static struct prudence_domain *hazards;

#include "prudence_pool.h"

static inline void retire(union pool pool, void *object)
{
    prudence_cache_free_deferred(pool.cache, object);
}

#include "naming.h"

static __thread struct prudence_hazard *slot;

static void start(struct run *run)
{
    (void)run;
    hazards = prudence_domain_create("hazard", PRUDENCE_DOMAIN_HAZARD, NULL);
    if (!hazards)
        abort();
}

static void thread_start(void)
{
    slot = prudence_hazard_acquire();
    if (!slot)
        abort();
}

static void thread_stop(void)
{
    prudence_hazard_release(slot);
}

static void quiesce(void)
{
    prudence_domain_synchronize(hazards);
}

static inline void protect(void)
{
    prudence_hazard_protect(slot, &linked);
}

static inline void reset(void)
{
    prudence_hazard_reset(slot);
}

static const struct operations hazard_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = protect,
    .read_unlock = reset,
    .relink = relink,
};

NAMING_LOOPS(hazard)

const struct family hazard_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .deferring = true,
    .latent_limited = true,
    .start = start,
    .thread_start = thread_start,
    .thread_stop = thread_stop,
    .quiesce = quiesce,
    .latent = prudence_latent,
    .report = prudence_report,
    NAMING_MEMBERS(hazard),
};
