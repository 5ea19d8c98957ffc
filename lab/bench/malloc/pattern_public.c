/* SPDX-License-Identifier: MIT */
/*
 * Programs of the kinds in a public set of allocator benchmarks, written anew from their
 * descriptions. Three others of that set have patterns with older names here: larson, phases
 * (mstress), asymmetric (xmalloc).
 *
 *   like-sh6           bursts of small blocks, freed in part youngest first, in part oldest first
 *   like-sh8           the same with more sizes, and some bursts freed by another thread
 *   like-rptest        sets of blocks of many sizes, exchanged whole between threads
 *   like-alloc-test    replaces few slots often and most rarely; sizes likewise; writes all bytes
 *   like-malloc-large  twenty buffers of 5 to 25 MB, any of them replaced
 */
#include "load.h"

#include <pthread.h>
#include <string.h>

/* ------------------------------------------------------------------------------- like-sh6, sh8 */

#define BURST 2000

/* Returns the smaller of two numbers, so small sizes are more frequent. */
static size_t skewed_size(uint64_t *random, size_t most)
{
    uint64_t a = random_below(random, most - BLOCK_LEAST),
             b = random_below(random, most - BLOCK_LEAST);

    return BLOCK_LEAST + (a < b ? a : b);
}

static void burst_make(struct member *member, struct block *blocks, size_t most)
{
    for (unsigned i = 0; i < BURST; i++)
        blocks[i] = block_new(member, skewed_size(&member->random, most));
}

/* Frees a third youngest first, the next oldest first; the rest stays for the next burst but
 * one. */
static void burst_free_some(struct block *blocks)
{
    for (unsigned i = BURST; i-- > 2 * BURST / 3;)
        block_end(&blocks[i]);
    for (unsigned i = BURST / 3; i < 2 * BURST / 3; i++)
        block_end(&blocks[i]);
}

static void burst_free(struct block *blocks)
{
    for (unsigned i = 0; i < BURST; i++)
        block_end(&blocks[i]);
}

static void sh6_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 6000000);
    struct block(*bursts)[BURST] = own_memory(4 * sizeof *bursts);

    for (unsigned i = 0; member->blocks < goal; i++) {
        burst_free(bursts[i % 4]);
        burst_make(member, bursts[i % 4], 400);
        burst_free_some(bursts[i % 4]);
    }
    for (unsigned i = 0; i < 4; i++)
        burst_free(bursts[i]);
    own_memory_end(bursts, 4 * sizeof *bursts);
}

/* A burst that one thread leaves and another one takes. */
struct counter {
    pthread_mutex_t lock; /* protects the burst */
    struct block burst[BURST];
};

#define COUNTERS 8
static struct counter counters[COUNTERS];

static void hand_over(struct counter *counter, struct block *burst)
{
    pthread_mutex_lock(&counter->lock);
    for (unsigned i = 0; i < BURST; i++) {
        struct block theirs = counter->burst[i];

        counter->burst[i] = burst[i];
        burst[i] = theirs;
    }
    pthread_mutex_unlock(&counter->lock);
}

static void sh8_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 1300000);
    struct block(*bursts)[BURST] = own_memory(4 * sizeof *bursts);

    for (unsigned i = 0; member->blocks < goal; i++) {
        struct block *burst = bursts[i % 4];

        burst_free(burst);
        burst_make(member, burst, 1000);
        if (i % 3)
            burst_free_some(burst);
        else
            hand_over(&counters[random_below(&member->random, COUNTERS)], burst);
    }
    for (unsigned i = 0; i < 4; i++)
        burst_free(bursts[i]);
    own_memory_end(bursts, 4 * sizeof *bursts);
}

static uint64_t sh8(const struct load *load)
{
    uint64_t blocks;

    for (unsigned i = 0; i < COUNTERS; i++)
        pthread_mutex_init(&counters[i].lock, NULL);
    blocks = team_run(load, load->threads, sh8_work, NULL);
    for (unsigned i = 0; i < COUNTERS; i++)
        burst_free(counters[i].burst);
    return blocks;
}

/* --------------------------------------------------------------------------------- like-rptest */

#define RP_SET 1024

static struct {
    pthread_mutex_t lock; /* protects the pointer */
    struct block *set;    /* set that a thread has handed to the next; NULL if there is none yet */
} crossing;

static struct block *cross(struct block *mine)
{
    struct block *theirs;

    pthread_mutex_lock(&crossing.lock);
    theirs = crossing.set;
    crossing.set = mine;
    pthread_mutex_unlock(&crossing.lock);
    return theirs ? theirs : own_memory(RP_SET * sizeof *mine);
}

static void rptest_end(struct block *set)
{
    for (unsigned i = 0; i < RP_SET; i++)
        block_end(&set[i]);
    own_memory_end(set, RP_SET * sizeof *set);
}

/* Frees every third block, starting at a different place each time, refills, and passes the set
 * on. */
static void rptest_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 1500000);
    struct block *set = own_memory(RP_SET * sizeof *set);

    for (unsigned round = 0; member->blocks < goal; round++) {
        for (unsigned i = round % 3; i < RP_SET; i += 3)
            block_end(&set[i]);
        for (unsigned i = 0; i < RP_SET; i++) {
            if (!set[i].at)
                set[i] = block_new(member, random_size(&member->random, 4, 14));
        }
        if (round % 8 == 7)
            set = cross(set);
    }
    rptest_end(set);
}

static uint64_t rptest(const struct load *load)
{
    uint64_t blocks;

    pthread_mutex_init(&crossing.lock, NULL);
    blocks = team_run(load, load->threads, rptest_work, NULL);
    if (crossing.set)
        rptest_end(crossing.set);
    return blocks;
}

/* ----------------------------------------------------------------------------- like-alloc-test */

#define SLOTS 32768

/* Halves the range repeatedly, each time with the same probability, so most results are near 0. */
static uint64_t favourite(uint64_t *random, uint64_t bound)
{
    while (bound > 16 && random_below(random, 5))
        bound /= 2;
    return random_below(random, bound);
}

static void alloc_test_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 1000000);
    struct block *slots = own_memory(SLOTS * sizeof *slots);

    while (member->blocks < goal) {
        struct block *any = &slots[favourite(&member->random, SLOTS)];

        if (any->at) {
            block_end(any);
            continue;
        }
        *any = block_new(member, BLOCK_LEAST + favourite(&member->random, 4096));
        if (any->size > 2 * BLOCK_LEAST) /* keeps its mark */
            memset((char *)any->at + BLOCK_LEAST, 1, any->size - 2 * BLOCK_LEAST);
    }
    for (unsigned i = 0; i < SLOTS; i++)
        block_end(&slots[i]);
    own_memory_end(slots, SLOTS * sizeof *slots);
}

/* --------------------------------------------------------------------------- like-malloc-large */

#define BUFFERS 20
#define MEGA    ((uint64_t)1 << 20)

static void malloc_large_work(struct member *member)
{
    uint64_t goal = load_scaled(member->load, 130);
    struct block buffers[BUFFERS] = {{NULL, 0}};

    while (member->blocks < goal) {
        struct block *any = &buffers[random_below(&member->random, BUFFERS)];

        block_end(any);
        *any = block_new(member, 5 * MEGA + random_below(&member->random, 20 * MEGA));
        block_touch(any);
    }
    for (unsigned i = 0; i < BUFFERS; i++)
        block_end(&buffers[i]);
}

const struct pattern pattern_like_sh6 = {
    "like-sh6", "bursts of 2,000 blocks of 8 to 400 bytes, freed in both orders", 1, MAX_THREADS,
    .work = sh6_work};
const struct pattern pattern_like_sh8 = {
    "like-sh8", "bursts of 2,000 blocks of 8 to 1,000 bytes, some freed by another thread", 1,
    MAX_THREADS, .run = sh8};
const struct pattern pattern_like_rptest = {
    "like-rptest", "sets of 16 bytes to 16 KB, exchanged whole between threads", 1, MAX_THREADS,
    .run = rptest};
const struct pattern pattern_like_alloc_test = {
    "like-alloc-test", "few of 32,768 slots and sizes are met often, all bytes written", 1,
    MAX_THREADS, .work = alloc_test_work};
const struct pattern pattern_like_malloc_large = {
    "like-malloc-large", "20 buffers of 5 to 25 MB, any of them replaced; one thread", 1, 1,
    .work = malloc_large_work};
