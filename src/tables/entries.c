/* SPDX-License-Identifier: MIT */
/* Entries of tables of values (entries.h). */
#include "tables/entries.h"

#include <prudence/stats.h>
#include <prudence/structure.h>

#include "os/os.h"

#define SMALLEST 32u
#define LARGEST  512u /* larger entries have whole pages */

static size_t bytes_of_class(const struct entries *entries, unsigned class)
{
    return entries->smallest << class;
}

/* Returns the class of whole pages. No entry of a number has this class. */
static unsigned large_class(const struct entries *entries)
{
    return entries->classes > 1 ? entries->classes - 1 : 1;
}

static unsigned class_of(const struct entries *entries, size_t length)
{
    unsigned class = 0;

    if (entries->classes == 1)
        return 0;
    while (class < large_class(entries) && length > bytes_of_class(entries, class) - entries->head)
        class ++;
    return class;
}

static size_t pages_of(const struct entries *entries, size_t length)
{
    return round_up(entries->head + length, OS_PAGE_SIZE);
}

void entries_init(struct entries *entries, const struct cache_owner *owner, size_t head,
                  bool strings)
{
    entries->owner = owner;
    entries->head = entries->smallest = head;
    entries->classes = 1;
    if (!strings)
        return;
    for (entries->smallest = SMALLEST; entries->smallest <= head;)
        entries->smallest *= 2;
    while (bytes_of_class(entries, entries->classes - 1) <= LARGEST)
        entries->classes++;
}

void entries_destroy(struct entries *entries)
{
    for (unsigned class = entries->classes; class -- > 0;)
        own_cache_destroy(entries->caches[class], entries->owner);
}

static void *alloc_large(struct entries *entries, size_t length)
{
    struct prudence_cache **place = &entries->caches[large_class(entries)];
    struct prudence_cache *cache = load_acquire(place);
    void *entry;

    if (!cache)
        cache = own_cache_make_blocks(place, entries->owner);
    if (!cache || length > SIZE_MAX / 2)
        return NULL;
    entry = prudence_cache_alloc_block(cache, pages_of(entries, length), NULL);
    if (entry)
        add_relaxed(&entries->large_bytes, pages_of(entries, length));
    return entry;
}

void *entries_alloc(struct entries *entries, size_t length)
{
    unsigned class = class_of(entries, length);
    struct prudence_cache *cache;

    if (unlikely(class == large_class(entries)))
        return alloc_large(entries, length);
    cache = own_cache(&entries->caches[class], entries->owner, bytes_of_class(entries, class), 0);
    return cache ? prudence_cache_alloc(cache) : NULL;
}

/* Stops counting an entry that is about to go. Returns the cache of the entry. */
static struct prudence_cache *cache_left_by(struct entries *entries, size_t length)
{
    const unsigned class = class_of(entries, length);

    if (class == large_class(entries))
        sub_relaxed(&entries->large_bytes, pages_of(entries, length));
    return entries->caches[class];
}

void entries_free(struct entries *entries, void *entry, size_t length)
{
    prudence_cache_free(cache_left_by(entries, length), entry);
}

void entries_defer(struct entries *entries, void *entry, size_t length)
{
    prudence_cache_free_deferred(cache_left_by(entries, length), entry);
}

void entries_add_bytes(const struct entries *entries, uint64_t *live, uint64_t *latent)
{
    for (unsigned class = 0; class < entries->classes; class ++) {
        struct prudence_cache_stats sums;

        own_cache_stats(&entries->caches[class], &sums);
        *latent += sums.bytes_latent;
        if (class != large_class(entries))
            *live += sums.objects_live * bytes_of_class(entries, class);
    }
    *live += load_relaxed(&entries->large_bytes);
}
