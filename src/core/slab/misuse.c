/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Prints one clear message with pointer, cache and event, then aborts. Nothing here trusts the
 * pointer or the memory nearby. misuse_refuse_run() runs under a node's lock.
 */
#include "slab/misuse.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/extension.h"
#include "slab/slab.h"

void misuse_explain_and_abort(const struct slab *slab, const void *object)
{
    extensions_explain(slab, object);
    os_abort();
}

/* Returns whether the cache is there still. Reports call this under any lock. */
static bool is_in_a_list(const struct prudence_cache *cache)
{
    const struct list *item;
    bool found = false;

    if (!os_lock_try(&slab_caches_lock))
        return false;
    list_for_each(item, &slab_caches)
    {
        found |= list_entry(item, struct prudence_cache, link) == cache;
    }
    list_for_each(item, &slab_cold_caches)
    {
        found |= list_entry(item, struct prudence_cache, link) == cache;
    }
    os_lock_release(&slab_caches_lock);
    return found;
}

/* Returns the name of the object's cache, which is not the slab's if caches share the slab. The
 * structure of a past owner may be gone, or that of a later cache, most likely of another size. */
static const char *name_of_cache(const struct slab *slab, const void *object)
{
    const struct prudence_cache *owner = slab->cache;

    if (slab->cache->flags & CACHE_COMMON && slab_offset(slab, object) < slab->bytes &&
        slab_index(slab, object) < slab->capacity)
        owner = load_relaxed(&slab_owners(slab)[slab_index(slab, object)]);
    if (slab_owner_is_past(owner)) {
        owner = slab_owner_of_past(owner);
        if (!is_in_a_list(owner) || owner->common != slab->cache)
            owner = NULL;
    }
    return owner ? owner->name : slab->cache->name;
}

static void report_place(const struct slab *slab, const void *object, const char *what)
{
    uint64_t offset = (uint64_t)((const char *)object - slab->base);
    size_t stride = slab->capacity == 1 ? slab->bytes : slab->cache->body->stride;

    if ((const char *)object < slab->base || offset >= slab->capacity * stride)
        os_report_misuse("%s: %p lies in a slab of cache '%s' but in none of its objects", what,
                         object, slab->cache->name);
    else
        os_report_misuse("%s: %p points into an object of cache '%s', %zu bytes after its start %p",
                         what, object, name_of_cache(slab, object), (size_t)(offset % stride),
                         (const void *)((const char *)object - offset % stride));
}

struct slab *misuse_checked_slab(const struct prudence_cache *cache, const void *object,
                                 const char *what)
{
    struct slab *slab = cache ? slab_of_cache(cache, object) : slab_of(object);

    if (likely(slab != NULL))
        return slab;
    slab = os_page_owner(object);
    if (!slab)
        os_report_misuse(
            "%s: foreign pointer %p is not memory of this allocator%s%s%s; free it with the "
            "allocator that it came from",
            what, object, cache ? " (cache '" : "", cache ? cache->name : "", cache ? "')" : "");
    else if (cache && name_of_cache(slab, object) != cache->name)
        os_report_misuse("%s: %p belongs to cache '%s', not to '%s'", what, object,
                         name_of_cache(slab, object), cache->name);
    else
        report_place(slab, object, what);
    misuse_explain_and_abort(slab, object);
}

static void describe_state(const struct slab *slab, const void *object, bool latent,
                           const char *label, const char *what)
{
    os_report_misuse("%s: %s%p of cache '%s' is already %s", what, label, object,
                     name_of_cache(slab, object), latent ? "deferred and not yet safe" : "free");
    extensions_explain(slab, object);
}

void misuse_describe_double(const struct slab *slab, const void *object, bool latent,
                            const char *what)
{
    describe_state(slab, object, latent, latent ? "" : "double free: ", what);
}

void misuse_describe_not_live(const struct slab *slab, const void *object, bool latent,
                              const char *what)
{
    describe_state(slab, object, latent, "", what);
}

bool misuse_check_live(const struct slab *slab, const void *object, const char *what)
{
    unsigned index = slab_index(slab, object), words = bits_words(slab->capacity);
    bool latent = bit_of_word(slab->bits + words, index) ||
                  bit_of_word(slab->bits + (size_t)2 * words, index);

    if (latent || bit_of_word(slab->bits, index))
        misuse_report_not_live(slab, object, latent, what);
    return extensions_check_live(slab, object, what);
}

uint32_t slab_end = SLAB_END_NOT_YET;

/* Returns whether the process goes on after doubles, of which only the first is reported. */
static bool end_goes_on(bool *first)
{
    uint32_t end = SLAB_END_GOES_ON;

    *first = compare_exchange(&slab_end, &end, SLAB_END_SAID) || end != SLAB_END_SAID;
    return load_relaxed(&slab_end) == SLAB_END_SAID;
}

/* Reports objects that are free or latent already, which ends a process, unless the process ends
 * anyway and is to keep its status. The objects stay as they were, as they do in a kernel. */
void misuse_refuse_run(struct run *run, uint64_t bits, bool latent, const char *what)
{
    bool first, on = end_goes_on(&first);

    if (first)
        misuse_describe_double(run->slab, run_object(run, bits), latent,
                               load_relaxed(&slab_end) != SLAB_END_NOT_YET ? "end of the process"
                                                                           : what);
    if (!on)
        os_misuse();
    run->bits &= ~bits;
    run->count -= (unsigned)__builtin_popcountll(bits);
}
