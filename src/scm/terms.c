/* SPDX-License-Identifier: MIT */
/* The words behind terms.h: made at a slab's first expiration date, gone with the slab. */
#include "scm/terms.h"
#include "slab/misuse.h"

static uint64_t terms_bytes; /* of all slabs; atomic */

static size_t bytes_of(const struct slab *slab)
{
    return slab->capacity * sizeof(union term);
}

/* Of two threads at it one wins. The slab is extended first: a thread that finds the words finds it so. */
union term *slab_terms_make(struct slab *slab)
{
    void *terms = slab_terms(slab), *none = NULL;

    if (terms)
        return terms;
    terms = os_meta_alloc(bytes_of(slab));
    if (!terms)
        return NULL;
    slab_extend(slab, TERMS_EXTENSION);
    if (!compare_exchange(&slab->side[TERMS_EXTENSION], &none, terms)) {
        os_meta_free(terms, bytes_of(slab));
        return none;
    }
    add_relaxed(&terms_bytes, bytes_of(slab));
    return terms;
}

uint64_t slab_terms_bytes(void)
{
    return load_relaxed(&terms_bytes);
}

/* All objects are free. */
static void going(struct slab *slab)
{
    union term *terms = slab_terms(slab);

    if (!terms)
        return; /* there was no memory for them */
    sub_relaxed(&terms_bytes, bytes_of(slab));
    os_meta_free(terms, bytes_of(slab));
}

/* NULL: the slab has none. */
static uint32_t *word_of(struct slab *slab, const void *object)
{
    union term *terms = slab_terms(slab);

    return terms ? &terms[slab_index(slab, object)].word : NULL;
}

static bool is_short_term(struct slab *slab, const void *object)
{
    const uint32_t *word = word_of(slab, object);

    return word && term_dates(load_relaxed(word));
}

/* An object is freed or deferred, by other means than a date: a short-term one is reported, and its finalizer is
 * forgotten. */
static void end(struct slab *slab, void *object, const char *what)
{
    uint32_t *place = word_of(slab, object), word = place ? load_relaxed(place) : 0;

    if (unlikely(term_dates(word))) {
        os_report(
            "%s: %p of cache '%s' is short-term memory: %u expiration date%s not yet processed "
            "will free it",
            what, object, slab->cache->name, term_dates(word), term_dates(word) == 1 ? "" : "s");
        explain_and_abort(slab, object);
    }
    if (word)
        store_relaxed(place, 0u);
}

const struct slab_extension terms_extension = {
    .going = going, .freed = end, .deferred = end, .owns = is_short_term};
