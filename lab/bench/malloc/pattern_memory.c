/* SPDX-License-Identifier: MIT */
/*
 * Memory that an allocator keeps after blocks were freed, and takes for blocks that are hardly
 * used. Each reports resident memory at the points that its summary names.
 *
 *   memory-sizes      20 MB of one size, all freed, then of the next one, ten times
 *   memory-survivors  75 MB of small blocks, of which one in N stays; then malloc_trim
 *   memory-quiet      200 MB of small blocks are freed, then a few are used now and then
 *   memory-calloc     256 MB from calloc, of which one page is used, six times
 *   memory-huge       blocks of twice the size until malloc refuses, the first word of each
 *                     written; -crowd with 60 threads at once, as LTP's mallocstress has them
 */
#include "load.h"

#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#define MB 1e6

/* `own`: bytes of own_memory() that are still there. */
static void say_resident(const char *figure, uint64_t own)
{
    load_said(figure, (double)(load_resident() - own) / MB);
}

/* -------------------------------------------------------------------------------------- sizes */

#define KINDS        10
#define KIND_BYTES   ((uint64_t)20 << 20)
#define KIND_LEAST   600
#define KIND_FARTHER 400 /* from one size to the next */

static void sizes_in_turn(struct member *member)
{
    uint64_t bytes = load_scaled(member->load, KIND_BYTES), room = bytes / KIND_LEAST + 1;
    struct block *blocks = own_memory(room * sizeof *blocks);

    for (unsigned kind = KINDS; kind-- > 0;) {
        size_t size = KIND_LEAST + KIND_FARTHER * kind;
        uint64_t count = bytes / size + 1;

        for (uint64_t i = 0; i < count; i++) {
            blocks[i] = block_new(member, size);
            block_touch(&blocks[i]);
        }
        for (uint64_t i = 0; i < count; i++)
            block_end(&blocks[i]);
    }
    own_memory_end(blocks, room * sizeof *blocks);
    say_resident("freed, MB", 0);
}

/* ---------------------------------------------------------------------------------- survivors */

#define SMALL_BLOCKS 350000

static void leave_one_in(struct member *member, struct block *blocks, uint64_t count, unsigned n,
                         const char *figure)
{
    for (uint64_t i = 0; i < count; i++)
        blocks[i] = block_new(member, 16 + random_below(&member->random, 400));
    for (uint64_t i = 0; i < count; i++) {
        if (i % n)
            block_end(&blocks[i]);
    }
    malloc_trim(0);
    say_resident(figure, count * sizeof *blocks);
    for (uint64_t i = 0; i < count; i += n)
        block_end(&blocks[i]);
}

static void survivors(struct member *member)
{
    uint64_t count = load_scaled(member->load, SMALL_BLOCKS);
    struct block *blocks = own_memory(count * sizeof *blocks);

    leave_one_in(member, blocks, count, 1000, "trimmed, one in 1,000 left, MB");
    leave_one_in(member, blocks, count, 256, "trimmed, one in 256 left, MB");
    leave_one_in(member, blocks, count, 64, "trimmed, one in 64 left, MB");
    own_memory_end(blocks, count * sizeof *blocks);
}

/* -------------------------------------------------------------------------------------- quiet */

#define QUIET_BYTES ((uint64_t)200 << 20)
#define QUIET_SIZE  200
#define STEP_NS     20000000
#define STEPS       1500 /* 30 s */
#define STEPS_SOON  250
#define STEP_BLOCKS 10

static void use_a_few(struct member *member)
{
    struct timespec pause = {.tv_nsec = STEP_NS};
    struct block few[STEP_BLOCKS];

    for (unsigned i = 0; i < STEP_BLOCKS; i++)
        few[i] = block_new(member, 30 + i * 97);
    for (unsigned i = 0; i < STEP_BLOCKS; i++)
        block_end(&few[i]);
    nanosleep(&pause, NULL);
}

static void free_in_no_order(struct member *member, struct block *blocks, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        block_end(&blocks[random_below(&member->random, count)]);
    for (uint64_t i = 0; i < count; i++)
        block_end(&blocks[i]);
}

static void quiet(struct member *member)
{
    uint64_t count = load_scaled(member->load, QUIET_BYTES / QUIET_SIZE);
    uint64_t steps = load_scaled(member->load, STEPS), soon = load_scaled(member->load, STEPS_SOON);
    struct block *blocks = own_memory(count * sizeof *blocks);

    for (uint64_t i = 0; i < count; i++)
        blocks[i] = block_new(member, QUIET_SIZE);
    free_in_no_order(member, blocks, count);
    own_memory_end(blocks, count * sizeof *blocks);
    say_resident("freed, MB", 0);
    for (uint64_t i = 0; i < steps; i++) {
        if (i == soon)
            say_resident("5 s later, MB", 0);
        use_a_few(member);
    }
    say_resident("30 s later, MB", 0);
}

/* ------------------------------------------------------------------------------------- calloc */

#define CALLOC_BYTES ((uint64_t)256 << 20)
#define CALLOC_TIMES 6

static void calloc_sparse(struct member *member)
{
    uint64_t bytes = load_scaled(member->load, CALLOC_BYTES);

    for (unsigned i = 0; i < CALLOC_TIMES; i++) {
        volatile char *block = calloc(1, bytes);

        if (!block || block[bytes / 3])
            load_fail("calloc(%llu) is not zeroed", (unsigned long long)bytes);
        block[bytes / 3] = 1;
        if (i == CALLOC_TIMES - 1)
            say_resident("one page used, MB", 0);
        free((void *)block);
        member->blocks++;
    }
    say_resident("freed, MB", 0);
}

/* --------------------------------------------------------------------------------------- huge */

#define HUGE_TURNS   1000
#define CROWD_TURNS  20
#define HUGE_POWERS  48
#define HUGE_LEAST   3
#define HUGE_THREADS 60

static void double_until_refused(struct member *member)
{
    uint64_t turns = load_scaled(member->load, *(const unsigned *)member->whatever);

    while (turns--) {
        uint64_t *blocks[HUGE_POWERS];
        unsigned power = HUGE_LEAST;

        while (power < HUGE_POWERS && (blocks[power] = malloc((size_t)1 << power))) {
            *blocks[power++] = member->index;
            member->blocks++;
        }
        while (power-- > HUGE_LEAST) {
            if (*blocks[power] != member->index)
                load_fail("the block of 2^%u bytes was overwritten", power);
            free(blocks[power]);
        }
    }
}

static uint64_t huge_by(const struct load *load, unsigned threads, unsigned turns)
{
    uint64_t blocks = team_run(load, threads, double_until_refused, &turns);

    say_resident("freed, MB", 0);
    return blocks;
}

static uint64_t huge(const struct load *load)
{
    return huge_by(load, 1, HUGE_TURNS);
}

static uint64_t huge_crowd(const struct load *load)
{
    return huge_by(load, HUGE_THREADS, CROWD_TURNS);
}

const struct pattern pattern_memory_sizes = {
    "memory-sizes", "20 MB of one size, all freed, then of the next, ten times", 1, 1,
    .work = sizes_in_turn};
const struct pattern pattern_memory_survivors = {
    "memory-survivors",
    "350,000 small blocks, of which one in 1,000, 256 and 64 stays; malloc_trim", 1, 1,
    .work = survivors};
const struct pattern pattern_memory_quiet = {
    "memory-quiet", "200 MB of small blocks are freed; then ten are used each 20 ms, for 30 s", 1,
    1, .work = quiet};
const struct pattern pattern_memory_calloc = {"memory-calloc",
                                              "256 MB from calloc, one page used, freed, six times",
                                              1, 1, .work = calloc_sparse};
const struct pattern pattern_memory_huge = {
    "memory-huge", "blocks of 8 bytes and more, until malloc refuses; one word written", 1, 1,
    .run = huge};
const struct pattern pattern_memory_huge_crowd = {
    "memory-huge-crowd", "memory-huge by 60 threads at once", 1, 1, .run = huge_crowd};
