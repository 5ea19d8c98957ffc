/* SPDX-License-Identifier: MIT */
/*
 * Prudence as it is meant to be used: one slab cache, deferred frees. A template: a file that includes this has
 * defined FAMILY, the name of its struct family, and REPLACE, which is replace or NULL; PROGRAM, if another one runs it; and
 * has included <prudence/inline.h> if its calls are to be inlined. Updates of lists keep one object in hand (prudence_cache_replace) in any case.
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

static const struct operations operations = {
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .allocate = allocate,
    .retire = retire,
    .replace = REPLACE,
    .renew = replace,
    .discard = discard,
    .retire_timed = retire,
    .read_lock = prudence_read_lock,
    .read_unlock = prudence_read_unlock,
};

SUBJECT_LOOPS

const struct family FAMILY = {
    .library = "prudence",
#ifdef PROGRAM
    .program = PROGRAM,
#endif
    .library_version = prudence_version,
    .deferring = true,
    .latent_limited = true,
    .quiesce = prudence_synchronize,
    .latent = prudence_latent,
    .report = prudence_report,
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};

#endif /* BENCH_PRUDENCE_FAMILY_H */
