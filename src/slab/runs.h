/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Runs: objects whose bits stand in one word of one slab's bitmaps. What goes to a node or comes from
 * it is turned into runs before its lock is taken, and back into objects after it is released: under
 * the lock a run costs what an object would. Objects that were handed out together lie side by side
 * (refill.c), and are mostly freed or deferred together.
 *
 * Whoever has a run has its objects: they are allocated or latent, so their slab stays.
 */
#ifndef SLAB_RUNS_H
#define SLAB_RUNS_H

#include "slab/slab.h"

/* So many at a time: they stand on a stack, which in a kernel is small. */
#define RUNS_MAX 24

struct run {
    struct slab *slab;
    uint64_t bits;
    uint32_t word, count;
};

/* Makes a run of the first objects, as many as belong to it; the first is of `slab`. An object that comes twice ends
 * the run: the second one is noticed when the next run is put. Returns how many. */
static inline unsigned run_gather(struct run *run, struct slab *slab, void **objects,
                                  unsigned count)
{
    unsigned index = slab_index(slab, objects[0]), word = index / BITS_PER_WORD, taken = 0;
    uint64_t bits = 0, bit = UINT64_C(1) << (index % BITS_PER_WORD);
    const size_t stride = slab->cache->stride;
    const char *end = slab->base + slab->capacity * stride;

    do {
        bits |= bit;
        if (++taken == count)
            break;
        if ((char *)objects[taken] == (char *)objects[taken - 1] + stride &&
            (char *)objects[taken] < end) {
            bit <<= 1; /* the next one; 0: of the next word */
            continue;
        }
        if ((uint64_t)((char *)objects[taken] - slab->base) >= (uint64_t)(end - slab->base))
            break; /* of another slab */
        index = slab_index(slab, objects[taken]);
        bit = index / BITS_PER_WORD == word ? UINT64_C(1) << (index % BITS_PER_WORD) : 0;
    } while (bit && !(bits & bit));
    *run = (struct run){.slab = slab, .bits = bits, .word = word, .count = taken};
    return taken;
}

/* The object of the lowest of `bits`. */
static inline void *run_object(const struct run *run, uint64_t bits)
{
    return slab_object(run->slab, run->word * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits),
                       run->slab->cache->stride);
}

/* Its objects, lowest address first; returns how many. */
static inline unsigned run_spread(const struct run *run, size_t stride, void **objects)
{
    char *object = run_object(run, run->bits);
    uint64_t bits = run->bits >> __builtin_ctzll(run->bits);

    for (unsigned i = 0; bits; bits >>= 1, object += stride)
        if (bits & 1)
            objects[i++] = object;
    return run->count;
}

#endif /* SLAB_RUNS_H */
