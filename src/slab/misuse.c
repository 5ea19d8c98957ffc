/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Misuse: one clear message with pointer, cache and what happened, then abort. Nothing here trusts
 * the pointer or the memory around it.
 */
#include "slab/cache.h"

struct slab_watch slab_watch READ_MOSTLY = {.wanted = false};

/* Says what else is known, after the first line of a report, and ends the process. */
static void explain_and_abort(const struct slab *slab, const void *object)
    __attribute__((noreturn));

static void explain_and_abort(const struct slab *slab, const void *object)
{
    if (slab_watch.explain)
        slab_watch.explain(slab, object);
    os_abort();
}

static void report_place(const struct slab *slab, const void *object, const char *what)
{
    uint64_t offset = (uint64_t)((const char *)object - slab->base);
    size_t stride = slab->capacity == 1 ? slab->bytes : slab->cache->stride;

    if ((const char *)object < slab->base || offset >= slab->capacity * stride)
        os_report("%s: %p lies in a slab of cache '%s' but in none of its objects", what, object,
                  slab->cache->name);
    else
        os_report("%s: %p points into an object of cache '%s', %zu bytes behind its start %p", what,
                  object, slab->cache->name, (size_t)(offset % stride),
                  (const void *)((const char *)object - offset % stride));
}

/* Where the option would have noted who allocated and freed it. */
static void suggest_check(const struct slab *slab)
{
    if (slab && !slab->states)
        os_report("  the option check=1 tells who allocated and who freed it");
}

struct slab *slab_of_checked(const struct prudence_cache *cache, const void *object,
                             const char *what)
{
    struct slab *slab = cache ? slab_of_cache(cache, object) : slab_of(object);

    if (likely(slab != NULL))
        return slab;
    slab = os_page_owner(object);
    if (!slab)
        os_report(
            "%s: foreign pointer %p is not memory of this allocator (cache '%s'); free it with the "
            "one that it came from",
            what, object, cache ? cache->name : "any");
    else if (cache && slab->cache != cache)
        os_report("%s: %p belongs to cache '%s', not to '%s'", what, object, slab->cache->name,
                  cache->name);
    else
        report_place(slab, object, what);
    suggest_check(slab);
    explain_and_abort(slab, object);
}

void describe_double(const struct slab *slab, const void *object, bool latent, const char *what)
{
    os_report("%s: double free: %p of cache '%s' is already %s", what, object, slab->cache->name,
              latent ? "deferred and not yet safe" : "free");
    suggest_check(slab);
    if (slab_watch.explain)
        slab_watch.explain(slab, object);
}

void describe_not_live(const struct slab *slab, const void *object, bool latent, const char *what)
{
    os_report("%s: %p of cache '%s' is already %s", what, object, slab->cache->name,
              latent ? "deferred and not yet safe" : "free");
    suggest_check(slab);
    if (slab_watch.explain)
        slab_watch.explain(slab, object);
}

void describe_short_term(const struct slab *slab, const void *object, unsigned dates,
                         const char *what)
{
    os_report(
        "%s: %p of cache '%s' is short-term memory: %u expiration date%s not yet processed "
        "will free it",
        what, object, slab->cache->name, dates, dates == 1 ? "" : "s");
    if (slab_watch.explain)
        slab_watch.explain(slab, object);
}

/*
 * check=1: every object's state changes by compare-and-swap, so of two frees one is caught. The word
 * also holds who allocated the object and who released it, so that the one which is caught sees
 * whose free came first.
 */
static uint64_t *word_of(const struct slab *slab, const void *object)
{
    return &slab->states[slab_index(slab, object)];
}

uint64_t object_state_word(const struct slab *slab, const void *object)
{
    return load_relaxed(word_of(slab, object));
}

static uint64_t word_after(uint64_t word, enum object_state to, uint32_t trace)
{
    uint64_t allocation = allocation_trace_of_word(word), release = release_trace_of_word(word);
    uint64_t deferred = word & WORD_DEFERRED;

    if (to == OBJECT_LIVE) {
        allocation = trace;
    } else if (state_of_word(word) == OBJECT_LIVE) {
        release = trace;
        deferred = to == OBJECT_LATENT ? WORD_DEFERRED : 0;
    }
    return release << (3 + TRACE_BITS) | allocation << 3 | deferred | (uint64_t)to;
}

void object_state_change(struct slab *slab, const void *object, enum object_state from,
                         enum object_state to, const char *what)
{
    static const char *const names[] = {"free", "live", "deferred and not yet safe"};
    uint64_t *place = word_of(slab, object), word = load_relaxed(place);
    bool by_caller =
        from == OBJECT_LIVE || to == OBJECT_LIVE; /* not by the end of a grace period */
    uint32_t trace = by_caller && slab_watch.trace ? slab_watch.trace() : 0;

    while (state_of_word(word) == from)
        if (compare_exchange(place, &word, word_after(word, to, trace)))
            return;
    os_report("%s: %p of cache '%s' is already %s", what, object, slab->cache->name,
              names[state_of_word(word)]);
    explain_and_abort(slab, object);
}

/* The end of a deferred object's grace period, in a watched cache. */
void object_is_safe(struct slab *slab, void *object)
{
    if (slab->states)
        object_state_change(slab, object, OBJECT_LATENT, OBJECT_FREE, "merge");
    if (slab_watch.safe)
        slab_watch.safe(slab, object);
}
