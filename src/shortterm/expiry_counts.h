/* SPDX-License-Identifier: MIT */
/*
 * Expiry counts. For each object they hold the number of expiration dates, the finalizer, and the
 * stamp of stamps.h. They are an extension of the slab layer (slab/extension.h), which a slab gets
 * with the first date of one of its objects.
 *
 * From then on the slab has two words for each object, out of line. A slab without any dated object
 * costs nothing. The dates themselves are descriptors, kept by the threads that gave them. An
 * object whose count is above 0 is "short-term", and only the end of the last date frees it.
 *
 * When the words are made, the slab's fast path of freeing is closed, and also the cache's in
 * caches whose users name them. So any other free of a short-term object is noticed, and the object
 * has neither dates nor a finalizer when it is allocated again. Frees by a date use the restartable
 * sequences directly.
 *
 * Any thread changes the count by atomic operations, but only the thread that has the object
 * changes it to 0 (expire.c). That thread also changes the finalizer. stamps.h says who changes the
 * stamp. An object without dates has no stamp, because the first date makes both and the last one
 * ends both, in one operation each on the two words.
 */
#ifndef SHORTTERM_EXPIRY_COUNTS_H
#define SHORTTERM_EXPIRY_COUNTS_H

#include "slab/extension.h"
#include "slab/slab.h"

/* Number of the extension, whose side data are a slab's words. */
enum { EXPIRY_COUNTS_EXTENSION = 0 };

#define EXPIRY_COUNT_BITS 26
#define EXPIRY_COUNT_MASK ((UINT32_C(1) << EXPIRY_COUNT_BITS) - 1)

/* Most dates of an object, less the number that one thread may add before another sees that there
 * are too many. */
#define EXPIRY_COUNT_MAX (EXPIRY_COUNT_MASK - (UINT32_C(1) << 20))

/* The field above the count is 0, the number of a finalizer (from 1 on), REGION if the object is a
 * page of a region (shortterm/regions.h), or SUSPECT if it was freed, perhaps without having been
 * allocated again (shortterm/suspects.c). */
#define EXPIRY_COUNT_FINALIZERS 32
#define EXPIRY_COUNT_REGION     33
#define EXPIRY_COUNT_SUSPECT    34
_Static_assert(EXPIRY_COUNT_SUSPECT < 1 << (32 - EXPIRY_COUNT_BITS), "a word has the number");

/* `word` is the lower half of `both`, in either order of bytes. */
union expiry_count {
    struct {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        uint32_t word;  /* number of dates, and finalizer */
        uint32_t stamp; /* 0 if none */
#else
        uint32_t stamp, word;
#endif
    };
    uint64_t both;
};

/* The word of a suspect, which has no date. */
#define EXPIRY_SUSPECT ((uint32_t)EXPIRY_COUNT_SUSPECT << EXPIRY_COUNT_BITS)

static inline bool expiry_count_is_suspect(uint32_t word)
{
    return word == EXPIRY_SUSPECT;
}

static inline void expiry_count_suspect(union expiry_count *expiry)
{
    store_relaxed(&expiry->word, EXPIRY_SUSPECT);
}

/* --- suspects.c --- */
/* Marks the objects that lie in CPUs' caches, in the new words of a slab before other threads see
 * them. */
void suspects_mark(const struct slab *slab, union expiry_count *counts);
/* Reports an object without dates that is not live; a live one is no suspect any more. `what` names
 * the operation about to use the object. */
void suspect_check_live(const struct slab *slab, union expiry_count *expiry, const void *object,
                        const char *what);

/* Returns the words of a slab, making them if necessary, or NULL if there is no memory. */
union expiry_count *expiry_counts_make(struct slab *slab);
uint64_t expiry_counts_bytes(void);

/* Returns the words of a slab, or NULL if there are none. */
static inline union expiry_count *expiry_counts_in(const struct slab *slab)
{
    return load_acquire(&slab->side[EXPIRY_COUNTS_EXTENSION]);
}

/* Returns the words of an object whose slab has them. */
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

#endif /* SHORTTERM_EXPIRY_COUNTS_H */
