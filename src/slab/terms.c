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
uint32_t *slab_terms_make(struct slab *slab)
{
    uint32_t *terms = slab_terms(slab), *none = NULL;

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

/* A word of a bitmap that others change meanwhile, under a lock that this thread does not have: the
 * bit of an object that it owns stays as it is. */
__attribute__((no_sanitize("thread"))) static bool bit_is_set(const uint64_t *bits, unsigned index)
{
    return *(const volatile uint64_t *)&bits[index / BITS_PER_WORD] >> (index % BITS_PER_WORD) & 1;
}

void slab_check_live(struct slab *slab, const void *object, const char *what)
{
    unsigned index = slab_index(slab, object);

    if (bit_is_set(slab_free_bits(slab), index) ||
        (slab->states && state_of_word(object_state_word(slab, object)) == OBJECT_FREE))
        report_not_live(slab, object, false, what);
    if (bit_is_set(slab_waiting_bits(slab), index) || bit_is_set(slab_next_bits(slab), index) ||
        (slab->states && state_of_word(object_state_word(slab, object)) == OBJECT_LATENT))
        report_not_live(slab, object, true, what);
}

void slab_term_end(struct slab *slab, const void *object, const char *what)
{
    uint32_t *term = &slab_terms(slab)[slab_index(slab, object)], word = load_relaxed(term);

    if (unlikely(term_dates(word)))
        report_short_term(slab, object, term_dates(word), what);
    if (word)
        store_relaxed(term, 0u);
}
