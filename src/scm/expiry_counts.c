/* SPDX-License-Identifier: MIT */
/* The words of expiry_counts.h: made at a slab's first expiration date, gone with the slab. */
#include "scm/expiry_counts.h"
#include "slab/misuse.h"

static uint64_t counts_bytes; /* of all slabs; atomic */

static size_t bytes_of(const struct slab *slab)
{
    return slab->capacity * sizeof(union expiry_count);
}

/* If two threads make the words at the same time, one wins. The slab is extended first: a thread that finds the words
 * finds it extended. */
union expiry_count *expiry_counts_make(struct slab *slab)
{
    void *counts = expiry_counts_in(slab), *none = NULL;

    if (counts)
        return counts;
    counts = os_meta_alloc(bytes_of(slab));
    if (!counts)
        return NULL;
    slab_extend(slab, EXPIRY_COUNTS_EXTENSION);
    if (!compare_exchange(&slab->side[EXPIRY_COUNTS_EXTENSION], &none, counts)) {
        os_meta_free(counts, bytes_of(slab));
        return none;
    }
    add_relaxed(&counts_bytes, bytes_of(slab));
    return counts;
}

uint64_t expiry_counts_bytes(void)
{
    return load_relaxed(&counts_bytes);
}

/* All objects are free. */
static void going(struct slab *slab)
{
    union expiry_count *counts = expiry_counts_in(slab);

    if (!counts)
        return; /* there was no memory for them */
    sub_relaxed(&counts_bytes, bytes_of(slab));
    os_meta_free(counts, bytes_of(slab));
}

/* NULL: the slab has none. */
static uint32_t *word_of(struct slab *slab, const void *object)
{
    union expiry_count *counts = expiry_counts_in(slab);

    return counts ? &counts[slab_index(slab, object)].word : NULL;
}

static bool is_short_term(struct slab *slab, const void *object)
{
    const uint32_t *word = word_of(slab, object);

    return word && expiry_count_dates(load_relaxed(word));
}

/* An object is freed or deferred, by other means than a date: a short-term one is reported, and its finalizer is
 * forgotten. */
static void end(struct slab *slab, void *object, const char *what)
{
    uint32_t *place = word_of(slab, object), word = place ? load_relaxed(place) : 0;

    if (unlikely(expiry_count_dates(word))) {
        os_report(
            "%s: %p of cache '%s' is short-term memory: %u expiration date%s not yet processed "
            "will free it",
            what, object, slab->cache->name, expiry_count_dates(word),
            expiry_count_dates(word) == 1 ? "" : "s");
        explain_and_abort(slab, object);
    }
    if (word)
        store_relaxed(place, 0u);
}

const struct slab_extension expiry_counts_extension = {
    .going = going, .freed = end, .deferred = end, .owns = is_short_term};
