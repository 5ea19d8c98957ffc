/* SPDX-License-Identifier: MIT */
/*
 * For authors of structures that readers search without locks. The library's own tables use caches
 * and domains by these functions and those of the other headers alone.
 *
 * A structure defers what it has unlinked: nodes of one size from a cache of equal objects
 * (<prudence/prudence.h>, with PRUDENCE_CACHE_HIDDEN_POINTERS if links carry marks), arrays from a
 * cache of blocks.
 */
#ifndef PRUDENCE_STRUCTURE_H
#define PRUDENCE_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes a cache of blocks, each of its own size and on pages of its own, whose readers are in
 * `domain` (NULL: the default domain). `name` is copied (31 bytes). Blocks are freed and deferred,
 * and the cache is shrunk, counted and destroyed, by the functions for other caches. Returns NULL
 * with errno EINVAL (no name; reported), EAGAIN (the library is still starting; reported) or
 * ENOMEM. Thread-safe; not for signal handlers.
 */
PRUDENCE_API struct prudence_cache *prudence_cache_create_blocks(const char *name,
                                                                 struct prudence_domain *domain);

/*
 * Allocates `size` bytes, aligned to 4096, from a cache of blocks. *zeroed, unless it is NULL, says
 * whether all bytes are known to be 0. Returns NULL with errno ENOMEM, or EINVAL for a cache of
 * equal objects (reported). From a cache of blocks prudence_cache_alloc and its kin, which know no
 * size, give NULL with EINVAL (reported). Costs system calls, unless freed pages are at hand.
 */
PRUDENCE_API PRUDENCE_KEEP void *prudence_cache_alloc_block(struct prudence_cache *cache,
                                                            size_t size, bool *zeroed);

/*
 * Returns whether `bytes` more can be deferred without a wait for latent_limit. Other threads may
 * take the room at any time, so this is a hint. Takes no lock.
 */
PRUDENCE_API bool prudence_latent_fits(size_t bytes);

/* Returns the kind of `domain` (NULL: the default domain). Async-signal-safe. */
PRUDENCE_API enum prudence_domain_kind
prudence_domain_kind_of(const struct prudence_domain *domain);

/*
 * Returns whether this thread may wait for readers of `domain`, as prudence_cache_destroy asks: 0;
 * EBUSY in a handler of pthread_atfork that runs between the library's own; or EDEADLK where the
 * thread would wait for itself. Unless `function` is NULL, EDEADLK is reported, once for each
 * `caller`, in words like "`function` `of` '`name`', called from `caller`, inside a read-side
 * critical section" (function "hash_destroy", of "of table", name "routes", and the address that
 * the function returns to). Takes locks, so not for signal handlers.
 */
PRUDENCE_API int prudence_domain_may_wait(struct prudence_domain *domain, const char *function,
                                          const char *of, const char *name, void *caller);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_STRUCTURE_H */
