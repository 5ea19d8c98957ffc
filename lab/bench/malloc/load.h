/* SPDX-License-Identifier: MIT */
/*
 * prudence-malloc-load: one allocation pattern in a separate process, so that LD_PRELOAD selects
 * the allocator.
 *
 *   struct load      the requested work: how much, by how many threads, from which seed
 *   struct pattern   the calls of the threads; each pattern was written from its description
 *   struct block     an allocated block, marked so that a wrong byte is seen when it ends
 *
 * A pattern's own data is in own_memory() or in static arrays: the heap holds only blocks. All
 * sizes follow from the seed, so that every allocator gets the same calls in each thread.
 */
#ifndef BENCH_MALLOC_LOAD_H
#define BENCH_MALLOC_LOAD_H

#include <stddef.h>
#include <stdint.h>

#define MAX_THREADS 256

struct load {
    double scale; /* 1 takes glibc's about half a second */
    unsigned threads;
    uint64_t seed;
};

struct member;

struct pattern {
    const char *name;
    const char *summary;
    unsigned least_threads; /* 1, or 2 if threads pass blocks to each other */
    unsigned most_threads;  /* 1 for a pattern of one thread */

    /* Work of each thread, which counts the blocks that it allocates, and frees them all. */
    void (*work)(struct member *member);
    /* Alternatively, if the threads share something: returns the number of blocks, all of them
     * freed. */
    uint64_t (*run)(const struct load *load);
};

extern const struct pattern pattern_lifo, pattern_fifo, pattern_random, pattern_one_size,
    pattern_mix, pattern_larson, pattern_asymmetric, pattern_free_only, pattern_phases,
    pattern_sizes, pattern_realloc, pattern_large, pattern_threads, pattern_fork,
    pattern_cache_thrash, pattern_cache_scratch, pattern_like_cfrac, pattern_like_espresso,
    pattern_like_barnes, pattern_like_sh6, pattern_like_sh8, pattern_like_rptest,
    pattern_like_alloc_test, pattern_like_malloc_large, pattern_memory_sizes,
    pattern_memory_survivors, pattern_memory_quiet, pattern_memory_calloc, pattern_memory_huge,
    pattern_memory_huge_crowd, pattern_memory_real_time;

/* Adds a figure of the pattern's own to the output. Not called by two threads at once. */
void load_said(const char *figure, double value);

/* Returns resident bytes as the kernel counts them page by page. */
uint64_t load_resident(void);

/* Returns `count` times the scale, at least 1. */
uint64_t load_scaled(const struct load *load, uint64_t count);

/* ------------------------------------------------------------------------------------ threads */

struct member {
    const struct load *load;
    unsigned index;
    uint64_t random; /* state of its random numbers */
    uint64_t blocks; /* number that it allocated */
    void *whatever;  /* the pattern's own data */
};

/* Runs `work` in `threads` threads, which start together. Returns the number of blocks that they
 * allocated. */
uint64_t team_run(const struct load *load, unsigned threads, void (*work)(struct member *member),
                  void *whatever);

/* ------------------------------------------------------------------------------------- blocks */

struct block {
    void *at; /* NULL if there is none */
    size_t size;
};

#define BLOCK_LEAST 8 /* bytes, for the mark */

/* Allocates and marks a block. Ends the program with a message if malloc fails. */
struct block block_make(size_t size);

/* Does the same, and counts the block for its thread. */
struct block block_new(struct member *member, size_t size);

/* Checks the mark and frees; ignores an empty block. Leaves the block empty. */
void block_end(struct block *block);

/* Grows or shrinks it by realloc, and checks that the contents are kept. */
void block_resize(struct block *block, size_t size);

/* Writes to each page of it that the mark does not touch. */
void block_touch(const struct block *block);

/* Ends the program, because the allocator has failed. */
_Noreturn void load_fail(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* Returns zeroed memory that is not from the heap. */
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

/* Returns a number from 0 to `bound` - 1; `bound` is below 2^32. */
static inline uint64_t random_below(uint64_t *state, uint64_t bound)
{
    return (random_next(state) >> 32) * bound >> 32;
}

/* Returns a number from 2^`low` to 2^`high` - 1, each power of two equally often, so small ones
 * prevail. */
static inline size_t random_size(uint64_t *state, unsigned low, unsigned high)
{
    uint64_t power = UINT64_C(1) << (low + random_below(state, high - low));

    return (size_t)(power + random_below(state, power));
}

#endif /* BENCH_MALLOC_LOAD_H */
