/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A run is a set of objects whose bits are in one word of a slab's bitmaps. Callers turn objects
 * into runs before they take a node's lock, and runs into objects after its release, so that a run
 * costs no more under the lock than an object. Objects that were handed out together lie side by
 * side (refill.c), and are mostly freed or deferred together.
 *
 * The holder of a run holds the objects. They are allocated or latent, so the slab stays.
 */
#ifndef SLAB_RUNS_H
#define SLAB_RUNS_H

#include "slab/slab.h"

/* Most runs handled at a time. They are on a stack, which is small in a kernel. */
#define RUNS_MAX 24

struct run {
    struct slab *slab;
    uint64_t bits;
    uint32_t word, count;
};

/* Makes a run of the first objects, as long as they fit into one, and returns their number. The
 * first object belongs to `slab`. A repeated object ends the run; the next run to be put reports
 * it. */
static inline unsigned run_gather(struct run *run, struct slab *slab, void **objects,
                                  unsigned count)
{
    unsigned index = slab_index(slab, objects[0]), word = index / BITS_PER_WORD, taken = 0;
    uint64_t bits = 0, bit = UINT64_C(1) << (index % BITS_PER_WORD);
    const size_t stride = slab->cache->body->stride;
    const char *end = slab->base + slab->capacity * stride;

    do {
        bits |= bit;
        if (++taken == count)
            break;
        if ((char *)objects[taken] == (char *)objects[taken - 1] + stride &&
            (char *)objects[taken] < end) {
            bit <<= 1; /* the next object; 0 if it is in the next word */
            continue;
        }
        if ((uint64_t)((char *)objects[taken] - slab->base) >= (uint64_t)(end - slab->base))
            break; /* object of another slab */
        index = slab_index(slab, objects[taken]);
        bit = index / BITS_PER_WORD == word ? UINT64_C(1) << (index % BITS_PER_WORD) : 0;
    } while (bit && !(bits & bit));
    *run = (struct run){.slab = slab, .bits = bits, .word = word, .count = taken};
    return taken;
}

/* Returns the object of the lowest of `bits`. */
static inline void *run_object(const struct run *run, uint64_t bits)
{
    return slab_object(run->slab, run->word * BITS_PER_WORD + (unsigned)__builtin_ctzll(bits),
                       run->slab->cache->body->stride);
}

/* Stores the objects of the run, lowest address first, and returns their number. */
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
