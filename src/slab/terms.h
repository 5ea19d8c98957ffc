/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Terms: how many expiration dates an object has, which finalizer, and the stamp of scm/stamps.h.
 *
 * A slab in which an object gets its first date gets two words for each object, out of line; a slab in
 * which none ever had one costs nothing more than a pointer. The dates themselves are not here: each
 * is a descriptor with the thread that gave it (scm/). An object whose count is above 0 is
 * "short-term": only the end of its last date frees it.
 *
 * So that any other free of it is noticed, and its word is 0 when the object is handed out again,
 * the slab's fast path of freeing is closed when the words are made; and that of the cache, in caches
 * whose users name them. Closed paths go to object_free_slow, which looks at the word and then uses
 * the same restartable sequences. Who frees by a date uses them directly.
 *
 * The count is changed by atomic operations of any thread, to 0 by who has the object alone (scm/expire.c); the
 * finalizer by who has the object; the stamp as scm/stamps.h says. An object without dates has no stamp: the first date
 * makes both and the last one ends both, in one operation each on the two words.
 */
#ifndef SLAB_TERMS_H
#define SLAB_TERMS_H

#include "slab/cache.h"

#define TERM_DATES_BITS 26
#define TERM_DATES_MASK ((UINT32_C(1) << TERM_DATES_BITS) - 1)
#define TERM_FINALIZERS 32 /* numbers 1 to 32, above the dates; 0: none */
#define TERM_REGION                                                                                \
    33 /* in place of a finalizer: the object is a page of a region (scm/regions.h) */

/* What one thread may add before another sees that it is too many. */
#define TERM_DATES_MAX (TERM_DATES_MASK - (UINT32_C(1) << 20))

union term {
    struct {
        uint32_t word;  /* dates and finalizer */
        uint32_t stamp; /* 0: none */
    };
    uint64_t both;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`word` is the lower half of `both`");

/* The terms of a slab; NULL: there is no memory for them. */
union term *slab_terms_make(struct slab *slab);
void slab_terms_unmake(struct slab *slab);
uint64_t slab_terms_bytes(void);

/* Whether the restartable sequences serve a cache, although fast paths may be closed by terms. */
static inline bool uses_sequences(const struct prudence_cache *cache)
{
    return likely(os_percpu_rseq) && likely(!cache->watched) && likely(cache->lines != NULL);
}

/* This slab's or NULL. */
static inline union term *slab_terms(struct slab *slab)
{
    return load_acquire(&slab->terms);
}

static inline uint32_t term_dates(uint32_t term)
{
    return term & TERM_DATES_MASK;
}

static inline unsigned term_finalizer(uint32_t term)
{
    return term >> TERM_DATES_BITS;
}

static inline bool slab_is_short_term(struct slab *slab, const void *object)
{
    union term *terms = slab_terms(slab);

    return unlikely(terms != NULL) &&
           term_dates(load_relaxed(&terms[slab_index(slab, object)].word));
}

/* Of a bitmap that others change meanwhile, under a lock that this thread does not have: but the bit of
 * an object that is its own stays as it is. */
__attribute__((no_sanitize("thread"))) static inline bool bit_of_word(const uint64_t *bits,
                                                                      unsigned index)
{
    return *(const volatile uint64_t *)&bits[index / BITS_PER_WORD] >> (index % BITS_PER_WORD) & 1;
}

void slab_report_dead(const struct slab *slab, const void *object, const char *what);

/* Before an object gets its first date: whether it may be free or deferred, as far as that can be seen: it is
 * back in its slab, or has a state. Then slab_report_dead says so, if it is. */
static inline bool slab_may_be_dead(const struct slab *slab, unsigned index)
{
    unsigned words = bits_words(slab->capacity);

    return unlikely(slab->states != NULL) || unlikely(bit_of_word(slab->bits, index)) ||
           unlikely(bit_of_word(slab->bits + words, index)) ||
           unlikely(bit_of_word(slab->bits + (size_t)2 * words, index));
}

static inline void slab_check_live(const struct slab *slab, const void *object, unsigned index,
                                   const char *what)
{
    if (slab_may_be_dead(slab, index))
        slab_report_dead(slab, object, what);
}

/* Before an object is freed or deferred by other means than a date: reports a short-term one, and
 * forgets its finalizer. */
void slab_term_end(struct slab *slab, const void *object, const char *what);

#endif /* SLAB_TERMS_H */
