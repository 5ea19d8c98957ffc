/* SPDX-License-Identifier: MIT */
/*
 * prudence-malloc-load: one allocation pattern in a process of its own, so that LD_PRELOAD decides
 * who serves it.
 *
 *   struct load      what was asked: how much, by how many threads, from which seed
 *   struct pattern   what its threads allocate and free; each was written from its description
 *   struct block     an allocated block, marked so that a wrong byte is seen when it ends
 *
 * Everything that a pattern needs for itself lies in own_memory() or in static arrays: the heap
 * holds blocks, and nothing else. All sizes follow from the seed, so that every allocator gets
 * the same calls in each thread.
 */
#ifndef BENCH_MALLOC_LOAD_H
#define BENCH_MALLOC_LOAD_H

#include <stddef.h>
#include <stdint.h>

#define MAX_THREADS 256

struct load {
    double scale; /* 1: about half a second of glibc's */
    unsigned threads;
    uint64_t seed;
};

struct member;

struct pattern {
    const char *name;
    const char *summary;
    unsigned least_threads; /* 1, or 2 where threads pass blocks to each other */
    unsigned most_threads;  /* 1: it is a pattern of one thread */

    /* What each thread does; it counts the blocks that it allocates, and frees them all. */
    void (*work)(struct member *member);
    /* Or, where the threads have something in common: blocks allocated, all freed. */
    uint64_t (*run)(const struct load *load);
};

extern const struct pattern pattern_lifo, pattern_fifo, pattern_random, pattern_one_size,
    pattern_mix, pattern_larson, pattern_asymmetric, pattern_free_only, pattern_phases,
    pattern_sizes, pattern_realloc, pattern_large, pattern_threads, pattern_fork,
    pattern_cache_thrash, pattern_cache_scratch, pattern_like_cfrac, pattern_like_espresso,
    pattern_like_barnes, pattern_like_sh6, pattern_like_sh8, pattern_like_rptest,
    pattern_like_alloc_test, pattern_like_malloc_large;

/* `count` times the scale, and at least 1. */
uint64_t load_scaled(const struct load *load, uint64_t count);

/* ------------------------------------------------------------------------------------ threads */

struct member {
    const struct load *load;
    unsigned index;
    uint64_t random; /* the state of its random numbers */
    uint64_t blocks; /* allocated by it */
    void *whatever;  /* of the pattern */
};

/* Runs `work` in `threads` threads, which start together; the blocks that they allocated. */
uint64_t team_run(const struct load *load, unsigned threads, void (*work)(struct member *member),
                  void *whatever);

/* ------------------------------------------------------------------------------------- blocks */

struct block {
    void *at; /* NULL: none */
    size_t size;
};

#define BLOCK_LEAST 8 /* bytes: room for the mark */

/* Allocate and mark. Ends the program with a message when malloc says no. */
struct block block_make(size_t size);

/* The same, counted for its thread. */
struct block block_new(struct member *member, size_t size);

/* Checks the mark and frees; an empty one is ignored. Leaves it empty. */
void block_end(struct block *block);

/* Grows or shrinks it by realloc. What fits must still be there. */
void block_resize(struct block *block, size_t size);

/* Writes to each page of it that the mark does not touch. */
void block_touch(const struct block *block);

/* Ends the program: the allocator has done something wrong. */
_Noreturn void load_fail(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory that is not the heap's. */
void *own_memory(size_t bytes);
void own_memory_end(void *memory, size_t bytes);

/* ------------------------------------------------------------------------------ random numbers */

/* SplitMix64 (Steele, Lea and Flood 2014). */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0 to `bound` - 1; `bound` is below 2^32. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
    return (random_next(state) >> 32) * bound >> 32;
}

/* From 2^`low` to 2^`high` - 1, each power of two as often as the next: small ones prevail. */
static inline size_t random_size(uint64_t *state, unsigned low, unsigned high)
{
    uint64_t power = UINT64_C(1) << (low + random_below(state, high - low));

    return (size_t)(power + random_below(state, power));
}

#endif /* BENCH_MALLOC_LOAD_H */
