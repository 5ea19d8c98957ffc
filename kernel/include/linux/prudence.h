/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Prudence in Linux: a slab allocator that knows which objects are about to be freed.
 *
 * The old version of an RCU-protected object is handed to prudence_kfree_deferred() (or, from a cache
 * of its own, prudence_cache_free_deferred()) once it is unlinked. The allocator keeps it, unwritten,
 * until a grace period of the kernel's RCU is over, and then hands it out again.
 *
 * Context: every function that allocates or frees may be called from process, softirq and hardirq
 * context, with locks held and inside read-side critical sections. None may be called from NMI: an
 * allocation there returns NULL, a free leaks the object, and either warns once. Under PREEMPT_RT an
 * allocation with interrupts or preemption off has no pages made, only objects that are there already.
 * Allocations honour how hard GFP flags let them try; only with __GFP_DIRECT_RECLAIM do they wait. Frees
 * and deferrals never wait and never fail.
 *
 * Objects are aligned to 16 bytes (8 below 16 bytes); prudence_kmalloc's of a power of two to their
 * size. __GFP_ZERO and the kernel's init_on_alloc and init_on_free are honoured, __GFP_ACCOUNT is not
 * (docs/reference/kernel.md). GFP_DMA and GFP_DMA32 give NULL, with a warning. __GFP_NOFAIL is honoured for any size,
 * for callers that may sleep.
 */
#ifndef LINUX_PRUDENCE_H
#define LINUX_PRUDENCE_H

#include <linux/gfp.h>
#include <linux/types.h>

struct prudence_cache;

/* As SLAB_TYPESAFE_BY_RCU: an object freed with prudence_cache_free() may be handed out again at once,
 * its page stays this cache's until a grace period later. Its contents stay, too, whatever init_on_alloc and
 * init_on_free say; __GFP_ZERO zeroes it. */
#define PRUDENCE_TYPESAFE (1u << 0)

/*
 * Makes a cache of objects of `size` bytes (1 to 32768), aligned to `align` (a power of two up to a
 * page; 0: the default). The constructor runs once for each object when its slab is made. NULL when
 * an argument is invalid (with a warning) or memory ran out. May sleep.
 */
struct prudence_cache *prudence_cache_create(const char *name, size_t size, size_t align,
                                             unsigned int flags, void (*constructor)(void *));

/* Destroys a cache that nobody uses any more. Waits for its own deferred objects and for nothing
 * else. -EBUSY while objects are live, with the cache as usable as before. May sleep. */
int prudence_cache_destroy(struct prudence_cache *cache);

/* Empties object caches, merges what is safe, gives free slabs back; returns their bytes. Does not
 * wait for a grace period. May sleep. */
size_t prudence_cache_shrink(struct prudence_cache *cache);

void *prudence_cache_alloc(struct prudence_cache *cache, gfp_t gfp) __must_check;
void prudence_cache_free(struct prudence_cache *cache, void *object);
void prudence_cache_free_deferred(struct prudence_cache *cache, void *object);

/*
 * For a writer that replaces objects all the time: defers `old` (NULL: none), which is unlinked already, and returns
 * an object for the *next* update, which the writer keeps in hand: fill that one, publish it, then replace the one
 * that it unlinked. `old` is deferred in any case, also when NULL is returned, since there is no memory. Not to be
 * called before the publication: readers would still find what is deferred.
 */
void *prudence_cache_replace(struct prudence_cache *cache, void *old, gfp_t gfp) __must_check;

/* Any size. NULL is ignored by the frees. */
void *prudence_kmalloc(size_t size, gfp_t gfp) __must_check;
void prudence_kfree(const void *object);
void prudence_kfree_deferred(const void *object);

/* The same for an object that may be another allocator's. False: it is, or NULL, and nothing has happened. */
bool prudence_try_kfree(const void *object) __must_check;
bool prudence_try_kfree_deferred(const void *object) __must_check;

/* The paper's names, for a subsystem that switches over. */
#define kfree_deferred(object)                  prudence_kfree_deferred(object)
#define kmem_cache_free_deferred(cache, object) prudence_cache_free_deferred(cache, object)

/* ------------------------------------------------------------------------------- what it counts */

struct prudence_cache_stats {
    char name[32];
    size_t object_size, object_stride, slab_size, object_cache_size;
    u64 allocations, hits, hits_after_merge, frees, deferred_frees;
    u64 refills, refilled_objects, flushes, flushed_objects, object_cache_churns;
    u64 grows, shrinks, slab_churns;
    u64 merges, merged_objects, preflushed_objects, overflowed_objects, premoved_slabs;
    u64 busy_bypasses, remote_drains, pressure_waits;
    u64 slabs_now, slabs_peak;
    u64 objects_live, objects_latent, objects_cached, bytes_latent;
    u64 fragmentation_permille; /* f_t x 1000; 0: no live objects */
};
void prudence_cache_stats(struct prudence_cache *cache, struct prudence_cache_stats *stats);

struct prudence_stats {
    u64 page_bytes, page_bytes_peak, metadata_bytes, latent_bytes, latent_bytes_peak;
    u64 latent_limit; /* bytes past which allocations that may sleep wait before a cache grows */
    u64 cookies, requests, expedited, waits, expiries;
    u64 hastened; /* times that a CPU did its part of a grace period before its next tick; 0 in prudence.ko */
    u64 throttle_waits; /* of these, by allocations past latent_limit */
    u64 interrupts; /* of other CPUs, to take their caches */
};
void prudence_stats(struct prudence_stats *stats);

/* The cache that prudence_kmalloc takes an object of `size` from; NULL above a page. */
struct prudence_cache *prudence_kmalloc_cache(size_t size);

/* For tests: called before pages or metadata are asked for, true makes that fail. NULL: never. */
void prudence_inject_failures(bool (*fails)(void));

#endif /* LINUX_PRUDENCE_H */
