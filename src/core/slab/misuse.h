/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Finds the slab of a pointer, or reports misuse and aborts. */
#ifndef SLAB_MISUSE_H
#define SLAB_MISUSE_H

#include "slab/runs.h"
#include "slab/slab.h"

/* Accepts objects of any cache if `cache` is NULL. */
struct slab *misuse_checked_slab(const struct prudence_cache *cache, const void *object,
                                 const char *what);

/* Prints other known facts after the first line of a report, and ends the process. `slab` may be
 * NULL. */
void misuse_explain_and_abort(const struct slab *slab, const void *object)
    __attribute__((noreturn));

void misuse_describe_double(const struct slab *slab, const void *object, bool latent,
                            const char *what);
void misuse_describe_not_live(const struct slab *slab, const void *object, bool latent,
                              const char *what);

static inline void __attribute__((noreturn))
misuse_report_double(const struct slab *slab, const void *object, bool latent, const char *what)
{
    misuse_describe_double(slab, object, latent, what);
    os_abort();
}

static inline void __attribute__((noreturn))
misuse_report_not_live(const struct slab *slab, const void *object, bool latent, const char *what)
{
    misuse_describe_not_live(slab, object, latent, what);
    os_abort();
}

/* Reads a bitmap that other threads may change under a lock that the caller does not hold. The bit
 * of an object that belongs to this thread does not change. */
__attribute__((no_sanitize("thread"))) static inline bool bit_of_word(const uint64_t *bits,
                                                                      unsigned index)
{
    return *(const volatile uint64_t *)&bits[index / BITS_PER_WORD] >> (index % BITS_PER_WORD) & 1;
}

/* Returns whether an object of this thread may be free or deferred. That is so if the slab has the
 * object back, or has an extension that is not in `known`; misuse_check_live() then knows for
 * certain. A plain read of the extensions is enough, because one added at the same time knows
 * nothing yet. */
__attribute__((no_sanitize("thread"))) static inline bool
slab_may_be_dead(const struct slab *slab, unsigned index, uint32_t known)
{
    unsigned words = bits_words(slab->capacity);

    return unlikely(slab->extensions & ~known) || unlikely(bit_of_word(slab->bits, index)) ||
           unlikely(bit_of_word(slab->bits + words, index)) ||
           unlikely(bit_of_word(slab->bits + (size_t)2 * words, index));
}

/* Reports an object that is not live, as far as that can be seen. Returns false if only an
 * extension frees the object, whatever the program does. */
bool misuse_check_live(const struct slab *slab, const void *object, const char *what);

/* The last search for double frees (double_free.c). SAID: the process goes on, and the first is
 * reported. Atomic. */
enum slab_end { SLAB_END_NOT_YET, SLAB_END_ABORTS, SLAB_END_GOES_ON, SLAB_END_SAID };
extern uint32_t slab_end;
void misuse_refuse_run(struct run *run, uint64_t bits, bool latent, const char *what);

/* Refuses objects of the run whose bits are set, though they should be clear. */
static inline void misuse_check_run(struct run *run, const char *what)
{
    const struct slab *slab = run->slab;
    const uint64_t *bits = slab->bits + run->word;
    unsigned words = bits_words(slab->capacity);
    uint64_t free = run->bits & bits[0];
    uint64_t latent = run->bits & (bits[words] | bits[words + words]);

    if (unlikely(free))
        misuse_refuse_run(run, free, false, what);
    if (unlikely(latent))
        misuse_refuse_run(run, latent, true, what);
}

#endif /* SLAB_MISUSE_H */
