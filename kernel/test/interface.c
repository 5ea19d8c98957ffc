// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The functions that users call, and what they refuse. */
#include <linux/ktime.h>
#include <linux/slab.h>

#include "test.h"

void figures_are_exact(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats stats;

    EXPECT_EQ(fill(cache, MANY), MANY);
    defer(cache, MANY / 2);
    stats = stats_of(cache);
    EXPECT_EQ(stats.allocations, MANY);
    EXPECT_EQ(stats.deferred_frees, MANY / 2);
    EXPECT_EQ(stats.objects_live, MANY / 2);
    EXPECT_EQ(prudence_cache_destroy(cache), -EBUSY); /* objects are live */
    while (stats.allocations-- > MANY / 2)
        prudence_cache_free(cache, objects[stats.allocations]);
    EXPECT_EQ(STAT(cache, frees), MANY / 2);
    EXPECT_EQ(prudence_cache_destroy(cache), 0); /* waits for the deferred ones */
}

void every_size_is_aligned_and_apart(void)
{
    size_t sizes[] = {1,   8,   9,   16,   24,   64,   65,   96,   100,  128,   192,   193,
                      256, 512, 777, 1024, 2048, 4000, 4096, 4097, 8192, 20000, 65536, 1000000};
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t align =
            sizes[i] & (sizes[i] - 1) ? 8 : min_t(size_t, max_t(size_t, sizes[i], 8), PAGE_SIZE);

        objects[i] = prudence_kmalloc(sizes[i], GFP_KERNEL | __GFP_ZERO);
        EXPECT(objects[i] != NULL);
        EXPECT(IS_ALIGNED((unsigned long)objects[i], align));
        EXPECT(!memchr_inv(objects[i], 0, sizes[i]));
        memset(objects[i], (int)i + 1, sizes[i]);
    }
    for (i = 0; i < ARRAY_SIZE(sizes); i++) {
        EXPECT(!memchr_inv(objects[i], (int)i + 1, sizes[i]));
        if (i % 2)
            kfree_deferred(objects[i]);
        else
            prudence_kfree(objects[i]);
    }
    prudence_kfree(NULL);
    prudence_kfree_deferred(NULL);
}

/* One who had it before has written to it. */
static void zeroed_again(size_t size)
{
    char *object, *again;

    migrate_disable();
    object = prudence_kmalloc(size, GFP_KERNEL);
    EXPECT(object != NULL);
    memset(object, 0x5a, size);
    prudence_kfree(object);
    again = prudence_kmalloc(size, GFP_KERNEL | __GFP_ZERO);
    migrate_enable();
    EXPECT(again != NULL);
    EXPECT(size > PAGE_SIZE || again == object);
    EXPECT(!memchr_inv(again, 0, size));
    prudence_kfree(again);
}

void zeroed_memory_is_zero_whoever_had_it(void)
{
    zeroed_again(8);
    zeroed_again(SIZE);
    zeroed_again(PAGE_SIZE);
    zeroed_again(16 * PAGE_SIZE);
}

static unsigned int constructed;

static void construct(void *object)
{
    memset(object, 0x5a, SIZE);
    constructed++;
}

void type_safe_memory_stays_constructed(void)
{
    struct prudence_cache *cache =
        prudence_cache_create("test", SIZE, 0, PRUDENCE_TYPESAFE, construct);
    unsigned int i, wrong = 0;
    unsigned int then;

    EXPECT(cache != NULL);
    constructed = 0;
    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL | __GFP_ZERO); /* has no say */
        wrong += !is_untouched(objects[i]);
    }
    EXPECT_EQ(wrong, 0);
    then = constructed;
    rcu_read_lock();
    for (i = 0; i < MANY; i++)
        prudence_cache_free(cache, objects[i]);
    rcu_read_unlock();
    for (i = 0; i < 100; i++)
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
    EXPECT_EQ(constructed, then);
    for (i = 0; i < 100; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void destroy_waits_for_its_own_deferred_objects(void)
{
    u64 used = totals().page_bytes;
    struct prudence_cache *cache = cache_of(SIZE);

    EXPECT_EQ(fill(cache, RING), RING);
    defer(cache, RING);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    EXPECT(totals().page_bytes <= used); /* all of it is given back */
}

void destroy_waits_for_nobody_else(void)
{
    struct prudence_cache *busy = cache_of(SIZE), *idle = cache_of(SIZE);
    ktime_t start;

    EXPECT_EQ(fill(busy, 100), 100);
    reader_enters();
    defer(busy, 100);
    start = ktime_get();
    EXPECT_EQ(prudence_cache_destroy(idle), 0); /* no grace period ends meanwhile */
    EXPECT(ktime_ms_delta(ktime_get(), start) < 5000);
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(busy), 0);
}

void invalid_caches_are_refused(void)
{
    pr_info("provoked: begin\n");
    EXPECT(prudence_cache_create("test", 0, 0, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("test", 64, 24, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("", 64, 0, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("test", 64, 0, 0x80, NULL) == NULL);
    pr_info("provoked: end\n");
}

void pointers_that_are_no_objects_are_refused(void)
{
    struct prudence_cache *cache = cache_of(SIZE), *other = cache_of(2 * SIZE);
    char *object = prudence_cache_alloc(cache, GFP_KERNEL);
    void *foreign = kmalloc(SIZE, GFP_KERNEL);
    int on_stack;

    pr_info("provoked: begin\n");
    prudence_cache_free(other, object);
    prudence_cache_free(cache, object + 8);
    prudence_kfree(foreign);
    prudence_kfree(&on_stack);
    prudence_kfree_deferred((void *)~0ul);
    pr_info("provoked: end\n");
    EXPECT_EQ(STAT(cache, objects_live), 1);
    prudence_cache_free(cache, object);
    kfree(foreign);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    EXPECT_EQ(prudence_cache_destroy(other), 0);
}
