/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Prudence in Linux, a slab allocator that knows which objects are about to be freed.
 *
 * A writer unlinks the old version of an RCU-protected object and passes it to
 * prudence_kfree_deferred() or, if the object is from a cache of its own, to
 * prudence_cache_free_deferred(). The allocator keeps the object, unwritten, until a grace period
 * of the kernel's RCU is over, and then hands it out again.
 *
 * Context: all functions that allocate or free may be called from process, softirq and hardirq
 * context, with locks held and inside read-side critical sections. None may be called from NMI;
 * there an allocation returns NULL, a free leaks the object, and either warns once. On PREEMPT_RT
 * an allocation with interrupts or preemption off cannot get pages, only objects that already
 * exist. GFP flags limit how hard an allocation tries; it waits only with __GFP_DIRECT_RECLAIM.
 * Frees and deferrals never wait and never fail.
 *
 * Objects are aligned to 16 bytes (8 if smaller than 16 bytes). prudence_kmalloc() aligns a power
 * of two to its size. __GFP_ZERO, init_on_alloc and init_on_free are honoured, except that the
 * contents of constructed objects are never cleared; __GFP_ACCOUNT is ignored
 * (docs/reference/kernel.md). GFP_DMA and GFP_DMA32 return NULL with a warning. __GFP_NOFAIL is
 * honoured for callers that may sleep and sizes up to KMALLOC_MAX_SIZE.
 */
#ifndef LINUX_PRUDENCE_H
#define LINUX_PRUDENCE_H

#include <linux/gfp.h>
#include <linux/types.h>

struct prudence_cache;

/* Like SLAB_TYPESAFE_BY_RCU: an object freed with prudence_cache_free() may be handed out again at
 * once, but the page stays with the cache until a grace period has passed. init_on_alloc and
 * init_on_free do not clear such objects; __GFP_ZERO does. */
#define PRUDENCE_TYPESAFE (1u << 0)

/*
 * Creates a cache of objects of `size` bytes (1 to 32768), aligned to `align` (a power of two up to
 * a page, or 0 for the default). The constructor runs once for each object when a slab is made.
 * Returns NULL if an argument is invalid (with a warning) or memory ran out. May sleep.
 */
struct prudence_cache *prudence_cache_create(const char *name, size_t size, size_t align,
                                             unsigned int flags, void (*constructor)(void *));

/* Destroys a cache that is no longer used. Waits only for the cache's own deferred objects. Returns
 * -EBUSY, and leaves the cache usable, if objects are live. May sleep. */
int prudence_cache_destroy(struct prudence_cache *cache);

/* Drains object caches, merges safe objects and frees slabs; returns the bytes freed. Does not wait
 * for a grace period. May sleep. */
size_t prudence_cache_shrink(struct prudence_cache *cache);

void *prudence_cache_alloc(struct prudence_cache *cache, gfp_t gfp) __must_check;
void prudence_cache_free(struct prudence_cache *cache, void *object);
void prudence_cache_free_deferred(struct prudence_cache *cache, void *object);

/*
 * For a writer that replaces objects all the time. Defers `old` (unless NULL), which is already
 * unlinked, and returns an object for the writer's *next* update. The writer fills and publishes
 * that object, then passes the one that it replaced. `old` is deferred even if no memory is left
 * and NULL is returned. Must not be called before the new version is published, or readers still
 * find `old`.
 */
void *prudence_cache_replace(struct prudence_cache *cache, void *old, gfp_t gfp) __must_check;

/* Any size up to KMALLOC_MAX_SIZE. The frees ignore NULL. */
void *prudence_kmalloc(size_t size, gfp_t gfp) __must_check;
void prudence_kfree(const void *object);
void prudence_kfree_deferred(const void *object);

/* For objects that may belong to another allocator. Return false, and do nothing, for such an
 * object and for NULL. */
bool prudence_try_kfree(const void *object) __must_check;
bool prudence_try_kfree_deferred(const void *object) __must_check;

/* The paper's names, for a subsystem that switches to Prudence. */
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
    u64 fragmentation_permille; /* f_t x 1000; 0 if no objects are live */
};
void prudence_cache_stats(struct prudence_cache *cache, struct prudence_cache_stats *stats);

struct prudence_stats {
    u64 page_bytes, page_bytes_peak, metadata_bytes, latent_bytes, limit_used_peak;
    u64 latent_limit; /* bytes past which allocations that may sleep wait before growing a cache */
    u64 cookies, requests, expedited, waits, expiries;
    u64 hastened;       /* times that a CPU did not wait for its tick; 0 in prudence.ko */
    u64 throttle_waits; /* waits of allocations past latent_limit; also in `waits` */
    u64 interrupts;     /* sent to other CPUs, to take their caches */
};
void prudence_stats(struct prudence_stats *stats);

/* Returns the cache that prudence_kmalloc() uses for `size`, or NULL if `size` exceeds a page. */
struct prudence_cache *prudence_kmalloc_cache(size_t size);

/* For tests. Pages and metadata are refused whenever `fails` returns true; NULL ends the test. */
void prudence_inject_failures(bool (*fails)(void));

#endif /* LINUX_PRUDENCE_H */
