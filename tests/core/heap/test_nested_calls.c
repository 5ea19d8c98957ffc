/* SPDX-License-Identifier: MIT */
/*
 * Nested calls (heap/nested.c): calls of malloc() and its family while their thread is inside the
 * library. Here a thread counts as inside because the test says so;
 * tests/preload/test_nested_calls.py uses functions of libc that allocate.
 */
#include "support/slab_test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <prudence/rcu.h>

#include "heap/nested.h"
#include "mapping.h"
#include "support/actor.h"
#include "support/process_memory.h"
#include "support/threads.h"
#include "support/stats.h"

#define LARGE 200000 /* has no fast path */

static struct prudence_cache *cache;

static void inside(void)
{
    os_busy_enter();
}

static void outside(void)
{
    os_busy_leave();
}

static void *nested_malloc(size_t size)
{
    void *block;

    inside();
    block = prudence_malloc(size);
    outside();
    return block;
}

static bool is_filled(const unsigned char *bytes, size_t size, unsigned char with)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != with)
            return false;
    return true;
}

TEST(sizes_and_alignments)
{
    static const size_t sizes[] = {0, 1, 64, 65, 512, 513, 4096, 5000, 70000, 3000000};

    inside();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t alignment = 1; alignment <= 65536; alignment *= 16) {
            void *block = prudence_aligned_alloc(alignment, sizes[i]);

            assert_true(nested_has(block));
            assert_int_equal((uintptr_t)block % alignment, 0);
            assert_true(prudence_usable_size(block) >= sizes[i]);
            memset(block, 1, sizes[i]);
            prudence_free(block);
            block = prudence_calloc(1, sizes[i]); /* may be the same block */
            assert_true(is_filled(block, sizes[i], 0));
            prudence_free_sized(block, sizes[i]);
        }
    }
    assert_null(prudence_malloc(SIZE_MAX));
    assert_null(prudence_malloc((size_t)PTRDIFF_MAX));
    outside();
    assert_false(nested_has(prudence_malloc(100)));
}

/* Reallocates small, medium and large objects of slabs inside the library. The contents move, and
 * the old object is freed later. */
TEST(realloc_of_objects)
{
    static const size_t sizes[] = {40, 4000, LARGE};

    for (unsigned from = 0; from < 3; from++) {
        for (unsigned to = 0; to < 3; to++) {
            size_t less = min_size(sizes[from], sizes[to]);
            unsigned char *object = prudence_malloc(sizes[from]);

            memset(object, 7, sizes[from]);
            inside();
            object = prudence_realloc(object, sizes[to]);
            assert_true(nested_has(object) ||
                        sizes[to] < LARGE); /* otherwise a CPU's cache may have one */
            assert_true(is_filled(object, less, 7));
            object = prudence_realloc(object, 2 * sizes[to]);
            assert_true(is_filled(object, less, 7));
            outside();
            object = prudence_realloc(object, 20 * sizes[to]); /* moves out of the side area */
            assert_false(nested_has(object));
            assert_true(is_filled(object, less, 7));
            prudence_free(object);
        }
    }
}

/* A nested free is put off, not lost. A second free then finds a foreign pointer. */
TEST(frees_of_objects_are_put_off)
{
    void *object = prudence_malloc(LARGE), *deferred = prudence_malloc(LARGE);
    struct prudence_stats before = stats_now(), after;

    inside();
    prudence_free(object);
    prudence_free_deferred(deferred);
    outside();
    assert_non_null(nested_put_off);
    prudence_stats(&after);
    assert_int_equal(before.frees + before.deferred_frees, after.frees + after.deferred_frees);
    prudence_free(prudence_malloc(LARGE)); /* a slow path */
    assert_null(nested_put_off);
    prudence_stats(&after);
    assert_int_equal(after.frees, before.frees + 2);
    assert_int_equal(after.deferred_frees, before.deferred_frees + 1);
    prudence_synchronize();
    prudence_trim();
    expect_death(prudence_free(object), "prudence_free", "foreign pointer");
}

/* -------------------------------------------------------------------------------- deferred blocks
 * */

static int enter(void *unused)
{
    prudence_read_lock();
    return 0;
}

static int leave(void *unused)
{
    prudence_read_unlock();
    return 0;
}

/* Takes every block of that size available without a new chunk, and gives all back. */
#define TAKEN 300
static bool is_handed_out(const void *block, size_t size)
{
    void *taken[TAKEN];
    bool found = false;

    for (unsigned i = 0; i < TAKEN; i++) {
        taken[i] = nested_malloc(size);
        found = found || taken[i] == block;
    }
    for (unsigned i = 0; i < TAKEN; i++)
        prudence_free(taken[i]);
    return found;
}

TEST(deferred_blocks_wait_for_readers)
{
    static const size_t sizes[] = {10, 1000, 4096, 20000};
    struct actor reader;

    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = nested_malloc(sizes[i]), *second = nested_malloc(sizes[i]);

        memset(block, 3, sizes[i]);
        actor_start(&reader);
        does(&reader, enter, NULL);
        prudence_free_deferred(block);
        inside();
        prudence_free_deferred(second);
        outside();
        gp_drive(gp_default_domain());
        assert_false(is_handed_out(block, sizes[i]));
        assert_true(is_filled(block, sizes[i], 3));
        does(&reader, leave, NULL);
        actor_end(&reader);
        prudence_synchronize();
        is_handed_out(NULL, sizes[i]); /* the second now gets a cookie */
        prudence_synchronize();
        assert_true(is_handed_out(block, sizes[i]));
        assert_true(is_handed_out(second, sizes[i]));
    }
}

/* Defers more blocks than can exist at a time, while no other thread drives grace periods. */
TEST(deferred_blocks_do_not_pile_up)
{
    for (unsigned i = 0; i < 5000; i++) {
        void *block = nested_malloc(LARGE);

        assert_non_null(block);
        prudence_free_deferred(block);
    }
}

/* ---------------------------------------------------------------------------------------- misuse
 * */

static void expect_death_by_all(char *block, const char *text)
{
    expect_death(prudence_free(block), text);
    expect_death((inside(), prudence_free(block)), text);
    expect_death(prudence_free_deferred(block), text);
    expect_death(discard(prudence_realloc(block, 10)), text);
    expect_death(prudence_usable_size(block), text);
}

TEST(misuse)
{
    char *freed = nested_malloc(100), *deferred = nested_malloc(100), *live = nested_malloc(100);

    prudence_free(freed);
    prudence_free_deferred(deferred);
    expect_death_by_all(freed, "a block that malloc gave to a nested call, is already free");
    expect_death_by_all(deferred, "is already deferred and not yet safe");
    expect_death_by_all(live + 24, "24 bytes after its start");
    expect_death(prudence_cache_free(cache, live), "prudence_cache_free", "belongs to no cache");
    prudence_free(live);
}

/* ------------------------------------------------------------------------------- threads, fork,
 * memory */

#define THREADS 4
#define ROUNDS  3000
static void *swapped[64];

/* Passes blocks from thread to thread, and frees them inside and outside. */
static void *swap_blocks(void *number)
{
    unsigned seed = (unsigned)(uintptr_t)number;

    for (unsigned i = 0; i < ROUNDS; i++, seed = seed * 1103515245 + 12345) {
        size_t size = i % 200 ? 24 + (seed >> 16) % 1000 : LARGE;
        size_t *block = nested_malloc(size), *old;

        if (!block)
            abort();
        memset(block, (int)(size & 0xff), size);
        *block = size;
        old = __atomic_exchange_n(&swapped[seed >> 8 & 63], block, __ATOMIC_ACQ_REL);
        if (!old)
            continue;
        if (!is_filled((unsigned char *)(old + 1), *old - sizeof *old, (unsigned char)*old))
            abort();
        if (seed & 1 << 20)
            inside();
        if (i % 16)
            prudence_free(old);
        else
            prudence_free_deferred(old);
        if (seed & 1 << 20)
            outside();
    }
    return NULL;
}

TEST(threads)
{
    pthread_t ids[THREADS];

    threads_start(ids, THREADS, swap_blocks);
    threads_join(ids, THREADS);
    for (unsigned i = 0; i < 64; i++) {
        prudence_free(swapped[i]);
        swapped[i] = NULL;
    }
}

TEST(forked_child)
{
    char *block = nested_malloc(100), *object = prudence_malloc(LARGE);
    pid_t child;

    inside();
    prudence_free(object); /* put off in both */
    outside();
    child = fork();
    if (child == 0) {
        prudence_free(block);
        prudence_free(nested_malloc(100));
        prudence_free(prudence_malloc(LARGE));
        _exit(nested_put_off != NULL);
    }
    assert_int_equal(status_of(child), 0);
    prudence_free(block);
    prudence_free(prudence_malloc(LARGE));
    assert_null(nested_put_off);
}

/* Existing blocks are served, and then ENOMEM is returned. Nothing is lost. */
TEST(no_memory)
{
    void *blocks[2000];
    unsigned count = 0;

    memory_fail(0, UINT32_MAX);
    inside();
    assert_null(prudence_malloc((size_t)1 << 30));
    assert_int_equal(errno, ENOMEM);
    while (count < 2000 && (blocks[count] = prudence_malloc(2000)))
        count++;
    assert_true(count > 0);
    for (unsigned i = 0; i < count; i++)
        prudence_free(blocks[i]);
    for (unsigned i = 0; i < count; i++)
        assert_non_null(blocks[i] = prudence_malloc(2000));
    for (unsigned i = 0; i < count; i++)
        prudence_free(blocks[i]);
    outside();
    memory_succeed();
}

/* A constructor that allocates. */
static void construct(void *object, void *context)
{
    *(void **)object = prudence_malloc(LARGE);
}

TEST(constructors_are_not_nested)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = construct};
    struct prudence_cache *constructed;
    void **object;

    constructed = prudence_cache_create("constructed", 4000, &attr);
    object = prudence_cache_alloc(constructed);
    assert_non_null(*object);
    assert_false(nested_has(*object));
    prudence_cache_free(constructed, object);
}

/* A call nested in the start finds nothing of which a cache could be made. */
TEST(no_cache_while_starting)
{
    process_starting = true;
    assert_null(prudence_cache_create("too early", 100, NULL));
    assert_int_equal(errno, EAGAIN);
    assert_true(nested_has(prudence_malloc(LARGE)));
    process_starting = false;
}

static unsigned seen;

static void count_call(const char *call)
{
    seen++;
}

/* A function that the program has put in the place of mmap may take locks and wait. */
TEST(a_chunk_is_mapped_unseen_while_something_is_held)
{
    void *blocks[16];

    seen = 0;
    mapping_watch(count_call);
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        assert_true(nested_has(blocks[i] = nested_malloc(3000000)));
    mapping_watch(NULL);
    assert_int_equal(seen, 0);
    for (unsigned i = 0; i < sizeof blocks / sizeof *blocks; i++)
        prudence_free(blocks[i]);
}

static void *filling[600];
static size_t space;

/* Makes all chunks before the call. */
static void make_all_chunks(const char *call)
{
    if (space)
        return;
    for (unsigned i = 0; i < sizeof filling / sizeof *filling; i++)
        filling[i] = prudence_malloc(70000);
    space = address_space();
}

/* Others made the last chunk while this one was mapped. The last test: no more can be made. */
TEST(a_chunk_without_a_place_is_unmapped)
{
    address_space(); /* may allocate at first */
    process_starting = true;
    mapping_watch(make_all_chunks);
    assert_null(prudence_malloc((size_t)60 << 20));
    mapping_watch(NULL);
    assert_int_equal(address_space(), space);
    for (unsigned i = 0; i < sizeof filling / sizeof *filling; i++)
        prudence_free(filling[i]);
    process_starting = false;
}

SUITE(cache = prudence_cache_create("nested calls", 100, NULL))
