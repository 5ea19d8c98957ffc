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
#include <linux/prudence_figures.h>
#include <linux/types.h>

struct prudence_cache;

/* Like SLAB_TYPESAFE_BY_RCU: an object freed with prudence_cache_free() may be handed out again at
 * once, but the page stays with the cache until a grace period has passed. init_on_alloc and
 * init_on_free do not clear such objects; __GFP_ZERO does. */
#define PRUDENCE_TYPESAFE (1u << 0)

/*
 * Creates a cache of objects of `size` bytes (1 to 32768), aligned to `align` (a power of two up to
 * 4096; less than 8 means 8, and 0 the default). The constructor runs once for each object when a
 * slab is made. Returns NULL if an argument is invalid (with a warning) or memory ran out. May
 * sleep.
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
 * that object, then passes the one that it replaced. `old` is deferred even if no memory remains
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

/* Returns how many bytes of an object may be used, like ksize(); 0 for NULL and for another
 * allocator's. */
size_t prudence_ksize(const void *object);

/* The paper's names, for a subsystem that switches to Prudence. */
#define kfree_deferred(object)                  prudence_kfree_deferred(object)
#define kmem_cache_free_deferred(cache, object) prudence_cache_free_deferred(cache, object)

/* ------------------------------------------------------------------------------- what it counts */

/* The figures are those of linux/prudence_figures.h. */
struct prudence_cache_stats {
    char name[32];
    ALL_FIGURES(COUNTER_FIELD, FIGURE_FIELD)
    u64 fragmentation_permille; /* f_t x 1000; 0 if no objects are live */
};
void prudence_cache_stats(struct prudence_cache *cache, struct prudence_cache_stats *stats);

/*
 * Figures of the module:
 *   latent_limit     bytes past which allocations that may sleep wait before growing a cache
 *   hastened         times that a CPU did not wait for its tick; 0 in prudence.ko
 *   throttle_waits   waits of allocations past latent_limit; also in `waits`
 *   interrupts       sent to other CPUs, to take their caches
 */
#define PRUDENCE_TOTALS(TOTAL)                                                                     \
    TOTAL(page_bytes)                                                                              \
    TOTAL(page_bytes_peak)                                                                         \
    TOTAL(metadata_bytes)                                                                          \
    TOTAL(latent_bytes)                                                                            \
    TOTAL(limit_used_peak)                                                                         \
    TOTAL(latent_limit)                                                                            \
    TOTAL(cookies)                                                                                 \
    TOTAL(requests)                                                                                \
    TOTAL(expedited)                                                                               \
    TOTAL(waits)                                                                                   \
    TOTAL(expiries)                                                                                \
    TOTAL(hastened)                                                                                \
    TOTAL(throttle_waits)                                                                          \
    TOTAL(interrupts)
struct prudence_stats {
    PRUDENCE_TOTALS(FIGURE_FIELD)
};
void prudence_stats(struct prudence_stats *stats);

/* Returns the cache that prudence_kmalloc() uses for `size`, or NULL if `size` exceeds a page. */
struct prudence_cache *prudence_kmalloc_cache(size_t size);

/* For tests. Pages and metadata are refused whenever `fails` returns true; NULL ends the test. */
void prudence_inject_failures(bool (*fails)(void));

#endif /* LINUX_PRUDENCE_H */
