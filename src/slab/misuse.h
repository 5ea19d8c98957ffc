/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* From a pointer to its slab, or a report and abort. */
#ifndef SLAB_MISUSE_H
#define SLAB_MISUSE_H

#include "slab/slab.h"

/* `cache` NULL: any. */
struct slab *slab_of_checked(const struct prudence_cache *cache, const void *object,
                             const char *what);

/* Follows the first line of a report: says what else is known (`slab` may be NULL), and ends the process. */
void explain_and_abort(const struct slab *slab, const void *object) __attribute__((noreturn));

void describe_double(const struct slab *slab, const void *object, bool latent, const char *what);
void describe_not_live(const struct slab *slab, const void *object, bool latent, const char *what);

static inline void __attribute__((noreturn))
report_double(const struct slab *slab, const void *object, bool latent, const char *what)
{
    describe_double(slab, object, latent, what);
    os_abort();
}

static inline void __attribute__((noreturn))
report_not_live(const struct slab *slab, const void *object, bool latent, const char *what)
{
    describe_not_live(slab, object, latent, what);
    os_abort();
}

/* Reads a bitmap that other threads may be changing under a lock that this thread does not have. The bit of an object
 * that belongs to this thread does not change. */
__attribute__((no_sanitize("thread"))) static inline bool bit_of_word(const uint64_t *bits,
                                                                      unsigned index)
{
    return *(const volatile uint64_t *)&bits[index / BITS_PER_WORD] >> (index % BITS_PER_WORD) & 1;
}

/* Whether an object of this thread's may be free or deferred, as far as its slab can tell: it is back in its slab, or
 * an extension other than those that the caller knows may know. If so, slab_check_live tells for certain. The slab
 * may get another extension at the same time, which knows nothing yet, so a plain read is enough. */
__attribute__((no_sanitize("thread"))) static inline bool
slab_may_be_dead(const struct slab *slab, unsigned index, uint32_t known)
{
    unsigned words = bits_words(slab->capacity);

    return unlikely(slab->extensions & ~known) || unlikely(bit_of_word(slab->bits, index)) ||
           unlikely(bit_of_word(slab->bits + words, index)) ||
           unlikely(bit_of_word(slab->bits + (size_t)2 * words, index));
}

/* Reports an object that is not live, as far as that can be seen. */
void slab_check_live(const struct slab *slab, const void *object, const char *what);

#endif /* SLAB_MISUSE_H */
