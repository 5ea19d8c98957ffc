/* SPDX-License-Identifier: MIT */
/*
 * hardened=1: the effect on objects, and its time. Until the grace period is over, no byte of a
 * deferred object, nor of the red zone after the object, is written. A freed object is not the next
 * one allocated, sizes are exact, and all resting memory comes back. preload/test_faults.py tests
 * that faults are caught.
 *
 * ctest: inlined-too
 * ctest: not-with thread (one thread)
 */
#include <unistd.h>

#include "guard/annotate.h"
#include "guard/red_zones.h"
#include "posix.h"
#include "support/slab_test.h"
#include "support/threads.h"

#define SIZE  100
#define LARGE ((size_t)256 << 10)

static void *filled(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    fill_pattern(object, SIZE);
    return object;
}

static bool is_zero(const char *bytes, size_t size)
{
    while (size && !bytes[size - 1])
        size--;
    return !size;
}

/* Covers the ring, which has room for 16, and latent slabs. Also checks the bytes after the
 * objects. */
TEST(deferred_memory_is_left_alone)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    char *objects[60], behind[60][RED_ZONE];

    for (unsigned i = 0; i < 60; i++) {
        objects[i] = filled(cache);
        memcpy(behind[i], objects[i] + SIZE, RED_ZONE);
    }
    defer_all(cache, (void **)objects, 60);
    prudence_cache_shrink(cache);
    prudence_trim();
    for (unsigned i = 0; i < 60; i++) {
        assert_true(has_pattern(objects[i], SIZE));
        assert_memory_equal(objects[i] + SIZE, behind[i], RED_ZONE);
    }
    prudence_manual_advance(cache->domain);
    for (unsigned i = 0; i < 60; i++)
        assert_true(has_pattern(objects[i], SIZE)); /* no visit yet */
    allocate_all(cache, (void **)objects, 60);
    for (unsigned i = 0; i < 60; i++)
        assert_true(is_zero(objects[i], SIZE));
    free_all(cache, (void **)objects, 60);
    destroy_empty(cache);
}

TEST(large_deferred_memory_is_left_alone)
{
    char *block = prudence_malloc(LARGE);

    fill_pattern(block, LARGE);
    prudence_read_lock();
    prudence_free_deferred(block);
    prudence_trim();
    assert_true(has_pattern(block, LARGE));
    prudence_read_unlock();
    prudence_synchronize();
}

TEST(sizes_are_exact)
{
    static const size_t sizes[] = {1,     8,     9,     24,    25,    100,      1000,
                                   20000, 32760, 32761, 40000, LARGE, LARGE + 1};

    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *object = prudence_malloc(sizes[i]), *moved;

        assert_int_equal(prudence_usable_size(object), sizes[i]);
        memset(object, 1, sizes[i]);
        moved = prudence_realloc(object, sizes[i] + 3);
        assert_int_equal(prudence_usable_size(moved), sizes[i] + 3);
        memset(moved, 2, sizes[i] + 3);
        moved = prudence_realloc(moved, sizes[i]);
        assert_int_equal(prudence_usable_size(moved), sizes[i]);
        assert_true(moved[0] == 2 && moved[sizes[i] - 1] == 2);
        prudence_free_sized(moved, sizes[i]);
    }
}

/* Without memory for a move, the object stays in place, and is freed with the last requested size,
 * of which no object is cached yet. */
TEST(a_failure_to_shrink_is_none)
{
    char *objects[] = {prudence_malloc(1000), prudence_malloc(LARGE),
                       prudence_aligned_alloc(64, 1000)};

    for (unsigned i = 0; i < 3; i++) {
        fill_pattern(objects[i], 1000);
        memory_fail(0, UINT32_MAX);
        assert_ptr_equal(prudence_aligned_realloc(objects[i], i < 2 ? 1 : 64, 300), objects[i]);
        memory_succeed();
        assert_true(has_pattern(objects[i], 300));
        prudence_free_sized(objects[i], 300);
    }
}

/* A growing large block has spare room, so that the total of all copying is proportional to the
 * final size. */
TEST(large_blocks_grow_in_place)
{
    char *block = prudence_malloc(LARGE), *before;
    unsigned moves = 0;

    for (size_t size = LARGE; size < 8 * LARGE; size += 4096) {
        before = block;
        block[size - 1] = 3;
        block = prudence_realloc(block, size + 4096);
        assert_int_equal(block[size - 1], 3);
        assert_int_equal(prudence_usable_size(block), size + 4096);
        moves += block != before;
    }
    assert_in_range(moves, 1, 40);
    prudence_free(block);
}

TEST(alignment_of_large_blocks)
{
    for (size_t alignment = 64; alignment <= (size_t)4 << 20; alignment *= 2) {
        char *block = prudence_aligned_alloc(alignment, LARGE);

        assert_int_equal((uintptr_t)block % alignment, 0);
        assert_int_equal(prudence_usable_size(block), LARGE);
        memset(block, 1, LARGE);
        prudence_free(block);
    }
}

TEST(empty_objects)
{
    void *objects[100];

    for (unsigned i = 0; i < 100; i++) {
        objects[i] = prudence_malloc(0);
        assert_non_null(objects[i]);
        assert_int_equal(prudence_usable_size(objects[i]), 0);
        for (unsigned j = 0; j < i; j++)
            assert_ptr_not_equal(objects[i], objects[j]);
    }
    objects[0] = prudence_realloc(objects[0], 10);
    memset(objects[0], 1, 10);
    for (unsigned i = 0; i < 50; i++)
        prudence_free(objects[i]);
    for (unsigned i = 50; i < 99; i++)
        prudence_free_deferred(objects[i]);
    prudence_free_sized(objects[99], 0);
    prudence_synchronize();
    prudence_trim();
}

/* A freed object rarely comes back at once, because it can come back from many places. */
TEST(reuse_is_shuffled)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    unsigned same = 0;

    for (unsigned i = 0; i < 1000; i++) {
        void *object = prudence_cache_alloc(cache), *next;

        prudence_cache_free(cache, object);
        next = prudence_cache_alloc(cache);
        same += next == object;
        prudence_cache_free(cache, next);
    }
    assert_in_range(same, 0, 100);
    assert_true(stats_of(cache).objects_live > 0);
    check_books(cache);
    prudence_cache_shrink(cache);
    assert_int_equal(stats_of(cache).objects_live, 0);
    destroy_empty(cache);
}

TEST(a_child_has_everything)
{
    struct prudence_cache *cache = fixed_cache(SIZE, 16, manual_domain());
    char *block = prudence_malloc(LARGE);
    void *object = prudence_cache_alloc(cache);
    pid_t child;

    prudence_cache_free(cache, object);
    child = fork();
    if (!child) {
        block[LARGE - 1] = 1;
        prudence_free(block);
        block = prudence_malloc(LARGE);
        prudence_free(block);
        _exit(prudence_cache_destroy(cache));
    }
    assert_int_equal(status_of(child), 0);
    prudence_free(block);
    destroy_empty(cache);
}

/* A failure loses nothing, and the next attempt succeeds. */
static unsigned failures_left;

static bool fails_after(void)
{
    return failures_left && --failures_left == 0;
}

TEST(no_memory_at_any_call)
{
    for (unsigned step = 1; step < 40; step++) {
        struct prudence_cache *cache;
        void *objects[3] = {NULL, NULL, NULL};

        failures_left = step;
        os_memory_fails = fails_after;
        cache = prudence_cache_create("short of memory", SIZE, NULL);
        objects[0] = cache ? prudence_cache_alloc(cache) : NULL;
        objects[1] = prudence_malloc(LARGE + step * 4096);
        objects[2] = prudence_malloc(0);
        os_memory_fails = NULL;
        if (objects[0])
            prudence_cache_free(cache, objects[0]);
        prudence_free(objects[1]);
        prudence_free(objects[2]);
        if (cache)
            assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

/* Closes pages as before Linux 6.13. */
static int use_protection(void **state)
{
    posix_guard_marks = false;
    return 0;
}

int main(void)
{
    assert_int_equal(prudence_option_set("hardened", "2"), EINVAL);
    assert_int_equal(prudence_option_set("hardened", "1"), 0);
    if (annotate_on) /* the tool has its own red zones and finds the same faults */
        return 0;
    return suite_run(NULL, NULL) || suite_run(use_protection, NULL);
}
