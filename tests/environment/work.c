/* SPDX-License-Identifier: MIT */
/* See environment.h. A block begins with its size and a mark that only this block has. The low byte
 * of the mark is also the last byte and some bytes between. */
#define _GNU_SOURCE
#include "environment.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if ENVIRONMENT_LIBRARY
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#endif

#define OWN    64
#define SHARED 16

struct block {
    size_t size;
    uint64_t mark;
};

static struct block *shared[SHARED]; /* atomic; the thread that exchanges a block out owns it */
static uint64_t marks;               /* the last mark; atomic */

void wrong(const char *what)
{
    if (write(STDERR_FILENO, "environment: ", 13) > 0 &&
        write(STDERR_FILENO, what, strlen(what)) > 0 && write(STDERR_FILENO, "\n", 1) > 0)
        _exit(WRONG);
    _exit(WRONG);
}

/* ------------------------------------------------------------------------------------ subjects */

#if ENVIRONMENT_LIBRARY

static struct prudence_cache *cache; /* objects of 64 bytes; made by the first allocation */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_cache(void)
{
    cache = prudence_cache_create("environment", 64, NULL);
    if (!cache)
        wrong("no cache");
}

void *subject_alloc(size_t size)
{
    pthread_once(&once, make_cache);
    return size <= 64 ? prudence_cache_alloc(cache) : prudence_malloc(size);
}

void *subject_realloc(void *block, size_t size)
{
    return prudence_realloc(block, size);
}

void subject_free(void *block)
{
    prudence_free(block);
}

void subject_retire(void *block)
{
    prudence_free_deferred(block);
}

void subject_read_begin(void)
{
    prudence_read_lock();
}

void subject_read_end(void)
{
    prudence_read_unlock();
}

void subject_settle(void)
{
    prudence_synchronize();
    prudence_trim();
}

#else

void *subject_alloc(size_t size)
{
    return malloc(size);
}

void *subject_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

void subject_free(void *block)
{
    free(block);
}

void subject_retire(void *block)
{
    free(block);
}

void subject_read_begin(void)
{
}

void subject_read_end(void)
{
}

void subject_settle(void)
{
}

#endif

/* ---------------------------------------------------------------------------------- the oracle */

static uint64_t next(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *random >> 33;
}

static void fill(struct block *block, size_t size)
{
    unsigned char *bytes = (unsigned char *)block;

    *block = (struct block){size, __atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED)};
    for (size_t i = sizeof *block; i < size; i += 509)
        bytes[i] = (unsigned char)block->mark;
    bytes[size - 1] = (unsigned char)block->mark;
}

static void expect_whole(const struct block *block, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)block;

    for (size_t i = sizeof *block; i < size; i += 509)
        if (bytes[i] != (unsigned char)block->mark)
            wrong("a block has other contents");
    if (bytes[size - 1] != (unsigned char)block->mark)
        wrong("a block has another end");
}

static size_t any_size(uint64_t *random)
{
    switch (next(random) % 64) {
    case 0:
        return 4096 + next(random) % 300000;
    case 1:
    case 2:
    case 3:
        return 1024 + next(random) % 8000;
    default:
        return sizeof(struct block) + 1 + next(random) % 600;
    }
}

static struct block *make(uint64_t *random)
{
    size_t size = any_size(random);
    struct block *block = subject_alloc(size);

    if (!block || (uintptr_t)block % 16)
        wrong(block ? "a block is misaligned" : "no memory");
    fill(block, size);
    return block;
}

static void drop(struct block *block)
{
    if (!block)
        return;
    expect_whole(block, block->size);
    block->mark = 0; /* another owner's check would fail */
    subject_free(block);
}

static struct block *resize(struct block *block, uint64_t *random)
{
    size_t size = 65 + any_size(random), before = block->size;
    uint64_t mark = block->mark;

    if (before <= 64)
        return block; /* an object of the cache */
    block = subject_realloc(block, size);
    if (!block || block->size != before || block->mark != mark)
        wrong("realloc lost a block");
    fill(block, size);
    return block;
}

/* Reads a block that other threads may retire at the same time. A plain malloc has no readers,
 * so there this thread takes the block and frees it. */
static void look(unsigned place)
{
#if ENVIRONMENT_LIBRARY
    const struct block *block;

    subject_read_begin();
    block = __atomic_load_n(&shared[place], __ATOMIC_CONSUME);
    if (block)
        expect_whole(block, block->size);
    subject_read_end();
#else
    struct block *block = __atomic_exchange_n(&shared[place], NULL, __ATOMIC_ACQ_REL);

    drop(block);
#endif
}

static void replace(struct block *block, unsigned place)
{
    struct block *old = __atomic_exchange_n(&shared[place], block, __ATOMIC_ACQ_REL);

    if (!old)
        return;
    expect_whole(old, old->size);
    subject_retire(old);
}

void work(unsigned steps)
{
    struct block *own[OWN] = {NULL};
    uint64_t random = __atomic_add_fetch(&marks, 1, __ATOMIC_RELAXED);

    while (steps--) {
        unsigned place = (unsigned)(next(&random) % OWN);

        switch (next(&random) % 8) {
        case 0:
            replace(make(&random), place % SHARED);
            break;
        case 1:
            look(place % SHARED);
            break;
        case 2:
            if (own[place])
                own[place] = resize(own[place], &random);
            break;
        default:
            drop(own[place]);
            own[place] = next(&random) % 4 ? make(&random) : NULL;
        }
    }
    for (unsigned i = 0; i < OWN; i++)
        drop(own[i]);
}

static void *work_of_thread(void *steps)
{
    work(*(unsigned *)steps);
    return NULL;
}

void work_in_threads(unsigned threads, unsigned steps)
{
    pthread_t thread[8];

    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, work_of_thread, &steps))
            wrong("no thread");
    for (unsigned i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}

void free_much(void)
{
    enum { BLOCKS = 2000, SIZE = 8000 };
    static void *blocks[BLOCKS];

    for (unsigned i = 0; i < BLOCKS; i++) {
        blocks[i] = subject_alloc(SIZE);
        if (!blocks[i])
            wrong("no memory");
        memset(blocks[i], 1, SIZE);
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        subject_free(blocks[i]);
}
