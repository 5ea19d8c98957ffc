/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The words behind slab/terms.h: made at a slab's first expiration date, gone with the slab. */
#include "slab/terms.h"

static uint64_t terms_bytes; /* of all slabs; atomic */

static size_t bytes_of(const struct slab *slab)
{
    return slab->capacity * sizeof slab->terms[0];
}

static void close_path(void **fast_lines)
{
    if (load_relaxed(fast_lines) != os_percpu_owned_lines)
        store_relaxed(fast_lines, os_percpu_owned_lines);
}

/* Of two threads at it one wins. The paths are closed first: whoever finds the words finds them so. */
union term *slab_terms_make(struct slab *slab)
{
    union term *terms = slab_terms(slab), *none = NULL;

    if (terms)
        return terms;
    terms = os_meta_alloc(bytes_of(slab));
    if (!terms)
        return NULL;
    close_path(&slab->fast_lines);
    if (slab->cache->named)
        close_path(&slab->cache->fast_lines);
    if (!compare_exchange(&slab->terms, &none, terms)) {
        os_meta_free(terms, bytes_of(slab));
        return none;
    }
    add_relaxed(&terms_bytes, bytes_of(slab));
    return terms;
}

/* All objects are free. */
void slab_terms_unmake(struct slab *slab)
{
    sub_relaxed(&terms_bytes, bytes_of(slab));
    os_meta_free(slab->terms, bytes_of(slab));
}

uint64_t slab_terms_bytes(void)
{
    return load_relaxed(&terms_bytes);
}

/* It is reported only if it is not live: a bit may have been seen that is no longer set. */
void slab_report_dead(const struct slab *slab, const void *object, const char *what)
{
    unsigned index = slab_index(slab, object);
    uint64_t word = slab->states ? object_state_word(slab, object) : (uint64_t)OBJECT_LIVE;
    bool latent = bit_of_word(slab->bits + bits_words(slab->capacity), index) ||
                  bit_of_word(slab->bits + (size_t)2 * bits_words(slab->capacity), index) ||
                  state_of_word(word) == OBJECT_LATENT;

    if (latent || bit_of_word(slab->bits, index) || state_of_word(word) == OBJECT_FREE)
        report_not_live(slab, object, latent, what);
}

void slab_term_end(struct slab *slab, const void *object, const char *what)
{
    uint32_t *term = &slab_terms(slab)[slab_index(slab, object)].word, word = load_relaxed(term);

    if (unlikely(term_dates(word)))
        report_short_term(slab, object, term_dates(word), what);
    if (word)
        store_relaxed(term, 0u);
}
