/* SPDX-License-Identifier: MIT */
/* Prudence, with readers that pin the epoch by their thread's record (<prudence/epoch.h>). */
#include <prudence/epoch.h>

#include "prudence_pool.h"

static __thread struct prudence_reader *record;

static void thread_start(void)
{
    record = prudence_epoch_record(prudence_default_domain());
    if (!record)
        abort();
}

static inline void retire(union pool pool, void *object)
{
    prudence_cache_free_deferred(pool.cache, object);
}

static inline void pin(void)
{
    prudence_epoch_pin(record);
}

static inline void unpin(void)
{
    prudence_epoch_unpin(record);
}

static const struct operations epoch_operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = pin,
    .read_unlock = unpin,
};

FAMILY_LOOPS(epoch)

const struct family epoch_family = {
    .library = "prudence",
    .library_version = prudence_version,
    .deferring = true,
    .latent_limited = true,
    .thread_start = thread_start,
    .quiesce = prudence_synchronize,
    .latent = prudence_latent,
    .report = prudence_report,
    FAMILY_MEMBERS(epoch),
};
