/* SPDX-License-Identifier: MIT */
/*
 * Long-running servers.
 *
 *   larson   each thread replaces random blocks of its set, then ends and leaves the set to a new
 *            thread: blocks are freed by threads that did not allocate them ("bleeding"; Larson and
 *            Krishnan, "Memory Allocation for Long-Running Server Applications", 1998)
 *   phases   threads build up state, exchange blocks with each other, drop some of it and end;
 *            the next phase has new threads (as mimalloc describes its stress test)
 *   threads  threads that do little and end: the allocator's cost of a thread's start and exit
 */
#define _GNU_SOURCE
#include "load.h"

#include <pthread.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- larson */

#define LARSON_SET         5000
#define LARSON_REPLACED    40000 /* by one thread before it ends */
#define LARSON_GENERATIONS 120

/* Data that one generation leaves to the next. */
struct estate {
    uint64_t random;
    uint64_t blocks;
    struct block set[LARSON_SET];
};

static void *larson_generation(void *argument)
{
    struct estate *estate = argument;

    for (unsigned i = 0; i < LARSON_REPLACED; i++) {
        struct block *any = &estate->set[random_below(&estate->random, LARSON_SET)];

        block_end(any);
        *any = block_make(8 + random_below(&estate->random, 993));
        estate->blocks++;
    }
    return NULL;
}

static void larson_work(struct member *member)
{
    uint64_t generations = load_scaled(member->load, LARSON_GENERATIONS);
    struct estate *estate = own_memory(sizeof *estate);
    pthread_t thread;

    estate->random = member->random;
    for (uint64_t i = 0; i < generations; i++) {
        if (pthread_create(&thread, NULL, larson_generation, estate))
            load_fail("cannot start generation %llu", (unsigned long long)i);
        pthread_join(thread, NULL);
    }
    for (unsigned i = 0; i < LARSON_SET; i++)
        block_end(&estate->set[i]);
    member->blocks = estate->blocks;
    own_memory_end(estate, sizeof *estate);
}

/* ------------------------------------------------------------------------------------- phases */

#define PHASES          40
#define PHASE_STEPS     60000
#define PHASE_KEPT      (PHASE_STEPS / 2)
#define EXCHANGE_LENGTH 1024

/* Slot in which threads leave blocks for each other. */
struct exchange {
    pthread_mutex_t lock; /* protects its slot */
    struct block block;
};

static size_t phase_size(uint64_t *random)
{
    uint64_t kind = random_below(random, 1000);

    return kind ? random_size(random, 3, kind < 10 ? 13 : 9) : random_size(random, 13, 17);
}

static void swap_with_others(struct member *member, struct exchange *exchange, struct block *mine)
{
    struct exchange *slot = &exchange[random_below(&member->random, EXCHANGE_LENGTH)];
    struct block theirs;

    pthread_mutex_lock(&slot->lock);
    theirs = slot->block;
    slot->block = *mine;
    pthread_mutex_unlock(&slot->lock);
    *mine = theirs;
}

/* Keeps half of the blocks until the end of the phase; frees the others soon or passes them on. */
static void phase_work(struct member *member)
{
    struct block *kept = own_memory(PHASE_KEPT * sizeof *kept);
    struct block recent[64] = {{NULL, 0}};

    for (unsigned i = 0; i < PHASE_STEPS; i++) {
        struct block *any = &recent[random_below(&member->random, 64)];

        if (i % 2)
            kept[i / 2] = block_new(member, phase_size(&member->random));
        block_end(any);
        *any = block_new(member, phase_size(&member->random));
        if (i % 8 == 0)
            swap_with_others(member, member->whatever, any);
    }
    for (unsigned i = 0; i < PHASE_KEPT; i++) /* in no order, two of three */
        block_end(&kept[random_below(&member->random, PHASE_KEPT)]);
    for (unsigned i = 0; i < PHASE_KEPT; i++)
        block_end(&kept[i]);
    for (unsigned i = 0; i < 64; i++)
        block_end(&recent[i]);
    own_memory_end(kept, PHASE_KEPT * sizeof *kept);
}

static uint64_t phases(const struct load *load)
{
    static struct exchange exchange[EXCHANGE_LENGTH];
    uint64_t count = load_scaled(load, PHASES), blocks = 0;

    for (unsigned i = 0; i < EXCHANGE_LENGTH; i++)
        pthread_mutex_init(&exchange[i].lock, NULL);
    for (uint64_t i = 0; i < count; i++) {
        struct load phase = *load;

        phase.seed += i;
        blocks += team_run(&phase, load->threads, phase_work, exchange);
    }
    for (unsigned i = 0; i < EXCHANGE_LENGTH; i++)
        block_end(&exchange[i].block);
    return blocks;
}

/* ------------------------------------------------------------------------------------ threads */

#define ERRAND 64 /* blocks of one thread */

static void *errand(void *argument)
{
    uint64_t *random = argument;
    struct block blocks[ERRAND];

    for (unsigned i = 0; i < ERRAND; i++)
        blocks[i] = block_make(random_size(random, 4, 11));
    for (unsigned i = 0; i < ERRAND; i++)
        block_end(&blocks[i]);
    return NULL;
}

static void threads_work(struct member *member)
{
    uint64_t count = load_scaled(member->load, 5000);
    pthread_t thread;

    for (uint64_t i = 0; i < count; i++) {
        if (pthread_create(&thread, NULL, errand, &member->random))
            load_fail("cannot start thread %llu", (unsigned long long)i);
        pthread_join(thread, NULL);
        member->blocks += ERRAND;
    }
}

const struct pattern pattern_larson = {
    "larson", "5,000 blocks of 8 to 1,000 bytes a thread, handed to the next thread", 1,
    MAX_THREADS, .work = larson_work};
const struct pattern pattern_phases = {
    "phases", "threads build up state, exchange blocks and end, again and again", 1, MAX_THREADS,
    .run = phases};
const struct pattern pattern_threads = {"threads", "short threads: 64 blocks each, then they end",
                                        1, MAX_THREADS, .work = threads_work};
