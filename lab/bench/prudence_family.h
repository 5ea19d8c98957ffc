/* SPDX-License-Identifier: MIT */
/*
 * Prudence in the intended use: one slab cache, deferred frees. A file that includes this has
 * included <prudence/inline.h> if the families should inline their calls. Updates of lists
 * always keep one object in hand (prudence_cache_replace).
 */
#ifndef BENCH_PRUDENCE_FAMILY_H
#define BENCH_PRUDENCE_FAMILY_H

#include "prudence_pool.h"

static inline void retire(union pool pool, void *object)
{
    prudence_cache_free_deferred(pool.cache, object);
}

static inline void *replace(union pool pool, void *old)
{
    return prudence_cache_replace(pool.cache, old);
}

/* `pair`: replace, if a pair is that one call, or NULL. `other_program`: the program that runs
 * it, or NULL. */
#define PRUDENCE_FAMILY(name, pair, other_program)                                                 \
    static const struct operations name##_operations = {                                           \
        .pool_create = pool_create,                                                                \
        .pool_destroy = pool_destroy,                                                              \
        .allocate = allocate,                                                                      \
        .retire = retire,                                                                          \
        .replace = pair,                                                                           \
        .renew = replace,                                                                          \
        .discard = discard,                                                                        \
        .retire_timed = retire,                                                                    \
        .read_lock = prudence_read_lock,                                                           \
        .read_unlock = prudence_read_unlock,                                                       \
    };                                                                                             \
    FAMILY_LOOPS(name)                                                                             \
    const struct family name##_family = {                                                          \
        .library = "prudence",                                                                     \
        .program = other_program,                                                                  \
        .library_version = prudence_version,                                                       \
        .deferring = true,                                                                         \
        .latent_limited = true,                                                                    \
        .quiesce = prudence_synchronize,                                                           \
        .latent = prudence_latent,                                                                 \
        .report = prudence_report,                                                                 \
        FAMILY_MEMBERS(name),                                                                      \
    };

#endif /* BENCH_PRUDENCE_FAMILY_H */
