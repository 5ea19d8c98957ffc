/* SPDX-License-Identifier: MIT */
/* Deferred frees by Prudence: the allocator itself waits for the grace period. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "model.h"

static void *allocate(size_t size)
{
    return prudence_malloc(size);
}

static void read_lock(void)
{
    prudence_read_lock();
}

static void read_unlock(void)
{
    prudence_read_unlock();
}

static uint64_t held(uint64_t live_bytes)
{
    struct prudence_stats stats = {.bytes_latent = 0};

    return prudence_stats(&stats) ? HELD_UNKNOWN : live_bytes + stats.bytes_latent;
}

const struct model model_deferred_prudence = {
    .description = "prudence_malloc, prudence_free_deferred",
    .allocate = allocate,
    .free = prudence_free,
    .defer = prudence_free_deferred,
    .read_lock = read_lock,
    .read_unlock = read_unlock,
    .quiesce = prudence_synchronize,
    .held = held,
};
