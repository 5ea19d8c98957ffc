/* SPDX-License-Identifier: MIT */
/*
 * Terms: how many expiration dates an object has, which finalizer, and the stamp of scm/stamps.h. An extension of the slab
 * layer (slab/extension.h), which a slab gets with the first date of one of its objects.
 *
 * From then on it has two words for each object, out of line; a slab in which none ever had a date costs nothing. The
 * dates themselves are not here: each is a descriptor with the thread that gave it. An object whose count is above 0 is
 * "short-term": only the end of its last date frees it.
 *
 * So that any other free of it is noticed, and its word is 0 when the object is handed out again, the slab's fast
 * path of freeing is closed when the words are made; and that of the cache, in caches whose users name them. What frees by
 * a date uses the restartable sequences directly.
 *
 * The count is changed by atomic operations of any thread, to 0 by the thread that has the object alone (expire.c); the
 * finalizer by the thread that has the object; the stamp as stamps.h says. An object without dates has no stamp: the first
 * date makes both and the last one ends both, in one operation each on the two words.
 */
#ifndef SCM_TERMS_H
#define SCM_TERMS_H

#include "slab/extension.h"
#include "slab/slab.h"

enum { TERMS_EXTENSION = 0 }; /* its number; its side data: the words of a slab */
extern const struct slab_extension terms_extension;

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
uint64_t slab_terms_bytes(void);

/* This slab's or NULL. */
static inline union term *slab_terms(struct slab *slab)
{
    return load_acquire(&slab->side[TERMS_EXTENSION]);
}

static inline uint32_t term_dates(uint32_t term)
{
    return term & TERM_DATES_MASK;
}

static inline unsigned term_finalizer(uint32_t term)
{
    return term >> TERM_DATES_BITS;
}

#endif /* SCM_TERMS_H */
