/* SPDX-License-Identifier: MIT */
/*
 * Many threads use large blocks at once: they allocate, free, defer, resize and pass them on, while
 * free pages decay, are trimmed, and memory is reported short. Contents stay whole, no two blocks
 * share a page, and in the end all pages come back. Each call that changes mappings allocates and
 * frees.
 */
#define _GNU_SOURCE
#include <sys/stat.h>

#include "mapping.h"
#include "posix.h"
#include "support/gp_torture.h"

#include "os/os.h"

#define THREADS 6
#define SHARED  96

struct block {
    uint64_t *words;
    size_t size;
    uint64_t tag;
};

static struct {
    pthread_mutex_t lock;
    struct block block;
} shared[SHARED];

static uint64_t operations, moved;
static unsigned largest;

/* Returns a multiple of the word size. */
static size_t random_size(uint64_t *random)
{
    unsigned dice = torture_below(random, 100);
    unsigned more = dice < 60 ? 400000 : dice < 90 ? 4000000 : largest;

    return 32776 + (torture_below(random, more) & ~7u);
}

/* Writes a word of each page. */
static void write_tags(struct block *block, size_t from)
{
    for (size_t at = (from + 4095) / 4096 * 4096; at < block->size; at += 4096)
        block->words[at / 8] = block->tag + at;
}

static void check_tags(const struct block *block, size_t size)
{
    for (size_t at = 0; at < size; at += 4096)
        if (block->words[at / 8] != block->tag + at) {
            torture_violation("page %zu of block %p changed", at / 4096, (void *)block->words);
            return;
        }
}

static void get(struct block *block, uint64_t *random)
{
    bool zeroed = torture_below(random, 4) == 0;

    block->size = random_size(random);
    block->tag = torture_random(random);
    block->words = zeroed ? prudence_calloc(1, block->size) : prudence_malloc(block->size);
    if (!block->words)
        return;
    for (size_t at = 0; zeroed && at < block->size; at += 4096)
        TORTURE_CHECK(block->words[at / 8] == 0);
    write_tags(block, 0);
}

static void resize(struct block *block, uint64_t *random)
{
    size_t size = torture_below(random, 2) ? random_size(random)
                                           : block->size + (torture_below(random, 65536) & ~7u);
    uint64_t *words = prudence_realloc(block->words, size);
    size_t before = block->size;

    if (!words)
        return;
    __atomic_fetch_add(&moved, words != block->words, __ATOMIC_RELAXED);
    block->words = words;
    block->size = size;
    check_tags(block, size < before ? size : before);
    write_tags(block, before);
}

static void put(struct block *block, uint64_t *random)
{
    check_tags(block, block->size);
    if (torture_below(random, 3))
        prudence_free(block->words);
    else
        prudence_free_deferred(block->words);
    block->words = NULL;
}

/* Allocates inside a call of the C library, as a program's replacement function would. */
static void allocate_in_call(const char *call)
{
    static __thread uint64_t random = 1;
    void *small = prudence_malloc(torture_below(&random, 3000)), *large;

    TORTURE_CHECK(os_holds_nothing());
    large =
        torture_below(&random, 4) ? NULL : prudence_malloc(32776 + torture_below(&random, 400000));
    prudence_free(small);
    if (call[1] == 'm')
        prudence_free(large);
    else if (large)
        prudence_free_deferred(large);
}

static void *worker(void *argument)
{
    uint64_t random = (uint64_t)(uintptr_t)argument;

    while (!torture_stopped()) {
        unsigned i = torture_below(&random, SHARED), dice = torture_below(&random, 1000);

        pthread_mutex_lock(&shared[i].lock);
        if (!shared[i].block.words)
            get(&shared[i].block, &random);
        else if (dice < 500)
            resize(&shared[i].block, &random);
        else
            put(&shared[i].block, &random);
        pthread_mutex_unlock(&shared[i].lock);
        if (dice == 0)
            prudence_trim();
        __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Increases the group's events all the time. */
static void write_events(const char *folder, unsigned count)
{
    char path[100];
    FILE *file;

    snprintf(path, sizeof path, "%smemory.events", folder);
    file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "low 0\nhigh %u\nmax 0\n", count);
    fclose(file);
}

static void watch(double seconds, const char *folder)
{
    uint64_t end = torture_now() + (uint64_t)(seconds * 1e9);

    for (unsigned i = 0; torture_now() < end || load_relaxed(&operations) <= 100; i++) {
        write_events(folder, i);
        torture_sleep_us(10000);
    }
}

static void check_end(void)
{
    struct prudence_stats stats;

    for (unsigned i = 0; i < SHARED; i++)
        if (shared[i].block.words)
            put(&shared[i].block, &(uint64_t){1});
    torture_expect_nothing_left(&stats);
}

static int torture(const char *variant, double seconds)
{
    char folder[] = "/tmp/prudence-group-XXXXXX", slashed[sizeof folder + 1], path[100];

    largest = strstr(variant, "small") ? 3000000 : 40000000;
    if (!mkdtemp(folder))
        return 1;
    snprintf(slashed, sizeof slashed, "%s/", folder);
    snprintf(path, sizeof path, "%smemory.events", slashed);
    write_events(slashed, 0);
    posix_pressure_inject(slashed, "/proc/pressure/memory");
    mapping_watch(allocate_in_call);
    for (unsigned i = 0; i < SHARED; i++)
        pthread_mutex_init(&shared[i].lock, NULL);
    torture_start(worker, THREADS, 1);
    watch(seconds, slashed);
    torture_join();
    mapping_watch(NULL);
    remove(path);
    remove(folder);
    check_end();
    TORTURE_SAY({"operations", operations}, {"moved", moved});
    return torture_end(variant);
}

TORTURE(torture, {"defaults", ""}, {"small, at once", "decay=0,retain=0"},
        {"limit", "limit=300M,wait_max=3ms"},
        {"checked, helper", "check=1,background=1,decay=10ms"})
