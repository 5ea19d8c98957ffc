/* SPDX-License-Identifier: MIT */
/*
 * Expiry counts: how many expiration dates an object has, which finalizer, and the stamp of scm/stamps.h. They are an
 * extension of the slab layer (slab/extension.h), which a slab gets with the first date of one of its objects.
 *
 * From then on the slab has two words for each object, out of line; a slab in which no object ever had a date costs
 * nothing. The dates themselves are not here: each is a descriptor with the thread that gave it. An object whose
 * count is above 0 is "short-term": only the end of its last date frees it.
 *
 * When the words are made, the slab's fast path of freeing is closed, and that of the cache, in caches whose users
 * name them. So any other free of a short-term object is noticed, and the object has neither dates nor a finalizer when
 * it is handed out again. Frees by a date use the restartable sequences directly.
 *
 * The count is changed by atomic operations of any thread, but to 0 only by the thread that has the object
 * (expire.c); the finalizer is changed by the thread that has the object; the stamp as stamps.h says. An object
 * without dates has no stamp: the first date makes both and the last one ends both, in one operation each on the two
 * words.
 */
#ifndef SCM_EXPIRY_COUNTS_H
#define SCM_EXPIRY_COUNTS_H

#include "slab/extension.h"
#include "slab/slab.h"

enum { EXPIRY_COUNTS_EXTENSION = 0 }; /* its number; its side data: the words of a slab */
extern const struct slab_extension expiry_counts_extension;

#define EXPIRY_COUNT_BITS 26
#define EXPIRY_COUNT_MASK ((UINT32_C(1) << EXPIRY_COUNT_BITS) - 1)

/* The most dates of an object, minus what one thread may add before another sees that it is too many. */
#define EXPIRY_COUNT_MAX (EXPIRY_COUNT_MASK - (UINT32_C(1) << 20))

/* Above the count: 0, the number of a finalizer, from 1 on, that the object is a page of a region (scm/regions.h), or that
 * it was freed, perhaps without having been allocated again (scm/suspects.c). */
#define EXPIRY_COUNT_FINALIZERS 32
#define EXPIRY_COUNT_REGION     33
#define EXPIRY_COUNT_SUSPECT    34

union expiry_count {
    struct {
        uint32_t word;  /* dates and finalizer */
        uint32_t stamp; /* 0: none */
    };
    uint64_t both;
};
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "`word` is the lower half of `both`");

static inline void expiry_count_suspect(union expiry_count *expiry)
{
    store_relaxed(&expiry->word, (uint32_t)EXPIRY_COUNT_SUSPECT << EXPIRY_COUNT_BITS);
}

/* --- suspects.c --- */
/* Of a slab whose new words nobody sees yet: marks the objects that lie in CPUs' caches. */
void suspects_mark(const struct slab *slab, union expiry_count *counts);
/* Reports a suspect that lies in a CPU's caches. `what` is about to be done with it. */
void suspect_check(const struct slab *slab, const void *object, const char *what);

/* Those of a slab, made unless it has them; NULL: there is no memory for them. */
union expiry_count *expiry_counts_make(struct slab *slab);
uint64_t expiry_counts_bytes(void);

/* Those of a slab; NULL: it has none. */
static inline union expiry_count *expiry_counts_in(struct slab *slab)
{
    return load_acquire(&slab->side[EXPIRY_COUNTS_EXTENSION]);
}

/* Of an object in a slab that has them. */
static inline union expiry_count *expiry_count_of(const void *object)
{
    struct slab *slab = slab_known(object);

    return &expiry_counts_in(slab)[slab_index(slab, object)];
}

static inline uint32_t expiry_count_dates(uint32_t word)
{
    return word & EXPIRY_COUNT_MASK;
}

static inline unsigned expiry_count_finalizer(uint32_t word)
{
    return word >> EXPIRY_COUNT_BITS;
}

#endif /* SCM_EXPIRY_COUNTS_H */
