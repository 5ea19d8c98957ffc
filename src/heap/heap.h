/* SPDX-License-Identifier: MIT */
/*
 * Private to heap/: any size, on top of slab caches; options; process life.
 */
#ifndef HEAP_HEAP_H
#define HEAP_HEAP_H

#include "slab/cache.h"
#include "slab/extension.h"

/* process.c: makes everything below ready; cheap when it is. Called by whatever may come first. */
void process_start_slow(void);
extern uint32_t process_started;
static inline void process_start(void)
{
    if (unlikely(!load_acquire(&process_started)))
        process_start_slow();
}

/* process.c: does what options want that is more than to be remembered (threads, signal handlers, traces).
 * After each change of options; with no lock held, and not inside an allocation. */
void process_act(void);

/* Defined in libprudence-malloc.so only; NULL elsewhere. */
extern const char process_is_malloc[] __attribute__((weak, visibility("hidden")));

/*
 * What fork is to do for the layers above, whose locks rank below all others: prepare takes them (none
 * when fork has interrupted the library), child mends what is theirs, done releases what prepare took.
 * Set by a constructor; NULL: there is nothing above.
 */
struct heap_above {
    void (*fork_prepare)(void);
    void (*fork_child)(void);
    void (*fork_done)(void);
};
extern const struct heap_above *heap_above;

/* Guards the making of caches: size classes, the cache of large blocks, and all others, which must
 * not be made while a start option changes (size_class.c). */
extern struct os_lock heap_lock;

/* large.c: blocks of whole pages. */
void *large_alloc(size_t size, size_t alignment, bool *zeroed);
bool large_resize(struct slab *slab, size_t size);
size_t large_growing(size_t size);
static inline bool is_large(const struct slab *slab)
{
    return !slab->cache->lines;
}

/* What the user of an object may use of it: without the line that spreads some strides (ADR 38), and without the red
 * zone. */
static inline size_t slab_usable_bytes(const struct slab *slab)
{
    const struct prudence_cache *cache = slab->cache;

    if (!cache->lines)
        return slab->bytes;
    return round_up(cache->object_size + cache->redzone, cache->alignment) - cache->redzone;
}

/* The same, or less where the size that was asked for is known. */
static inline size_t object_usable(const struct slab *slab, const void *object)
{
    size_t asked =
        unlikely(load_relaxed(&slab->extensions)) ? extensions_size_asked(slab, object) : 0;

    return asked ? asked : slab_usable_bytes(slab);
}

/* stats.c: the figures of the cache at a place in the list of caches; false behind its end. */
struct prudence_cache_stats;
bool stats_of_nth_cache(unsigned place, struct prudence_cache_stats *stats);

/* options.c */
void options_read_environment(void);

#endif /* HEAP_HEAP_H */
