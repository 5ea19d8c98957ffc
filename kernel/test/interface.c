// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests of the functions that users call, and of the arguments that they refuse. */
#include <linux/delay.h>
#include <linux/prudence.h>
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
    EXPECT_EQ(prudence_cache_destroy(cache), 0); /* waits for the deferred objects */
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

/* KASAN marks 8 bytes at a time. */
void small_alignments_are_raised(void)
{
    struct prudence_cache *cache = prudence_cache_create("test", 12, 4, 0, NULL);
    unsigned int i;

    EXPECT_EQ(STAT(cache, object_stride), 16);
    for (i = 0; i < 100; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        EXPECT(objects[i] && IS_ALIGNED((unsigned long)objects[i], 8));
    }
    while (i--)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

struct entry {
    int hop;
};

static struct entry_table {
    struct entry __rcu *entry;
} routes;

/* The example of docs/how-to/kernel.md. */
static void replace_entry(struct entry_table *table)
{
    struct entry *old = rcu_dereference_protected(table->entry, 1), *new;

    new = prudence_kmalloc(sizeof(*new), GFP_KERNEL); /* was: kmalloc */
    EXPECT(new != NULL);
    rcu_assign_pointer(table->entry, new);
    kfree_deferred(old); /* was: kfree_rcu(old, rcu); no rcu_head is needed */
}

void objects_are_replaced_under_their_readers(void)
{
    unsigned int i;

    for (i = 0; i < MANY; i++)
        replace_entry(&routes);
    kfree_deferred(rcu_dereference_protected(routes.entry, 1));
    RCU_INIT_POINTER(routes.entry, NULL);
}

/* Allocates zeroed memory that the previous owner has written to. */
static void zeroed_again(size_t size)
{
    char *object, *again;

    migrate_disable();
    object = prudence_kmalloc(size, GFP_KERNEL);
    EXPECT(object != NULL);
    memset(object, 0x5a, prudence_ksize(object));
    prudence_kfree(object);
    again = prudence_kmalloc(size, GFP_KERNEL | __GFP_ZERO);
    migrate_enable();
    EXPECT(again != NULL);
    EXPECT(size > PAGE_SIZE || again == object);
    EXPECT(!memchr_inv(again, 0, prudence_ksize(again)));
    prudence_kfree(again);
}

void zeroed_memory_is_zero_after_any_owner(void)
{
    zeroed_again(8);
    zeroed_again(SIZE);
    zeroed_again(PAGE_SIZE);
    zeroed_again(5 * PAGE_SIZE);
    zeroed_again(16 * PAGE_SIZE);
}

void destroy_waits_for_its_own_deferred_objects(void)
{
    u64 used = totals().page_bytes;
    struct prudence_cache *cache = cache_of(SIZE);

    EXPECT_EQ(fill(cache, RING), RING);
    defer(cache, RING);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    EXPECT(totals().page_bytes <= used); /* all pages are given back */
}

void destroy_waits_for_nobody_else(void)
{
    struct prudence_cache *busy = cache_of(SIZE), *idle = cache_of(SIZE);

    EXPECT_EQ(fill(busy, 100), 100);
    reader_enters();
    defer(busy, 100);
    EXPECT_EQ(prudence_cache_destroy(idle), 0); /* returns, although no grace period can end */
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

static atomic_t failures;

static bool fails_for_a_while(void)
{
    return atomic_dec_if_positive(&failures) >= 0;
}

void allocation_that_must_not_fail_does_not(void)
{
    size_t sizes[] = {SIZE, PAGE_SIZE, 2 * PAGE_SIZE, 16 * PAGE_SIZE};
    struct prudence_cache *cache;
    unsigned int i;
    void *object;

    prudence_inject_failures(fails_for_a_while);
    for (i = 0; i < ARRAY_SIZE(sizes); i++) {
        atomic_set(&failures, 30);
        object = prudence_kmalloc(sizes[i], GFP_KERNEL | __GFP_NOFAIL);
        EXPECT(object != NULL);
        prudence_kfree(object);
    }
    atomic_set(&failures, 0);
    cache = cache_of(4 * PAGE_SIZE);
    atomic_set(&failures, 30);
    object = prudence_cache_alloc(cache, GFP_KERNEL | __GFP_NOFAIL);
    EXPECT(object != NULL);
    prudence_inject_failures(NULL);
    prudence_cache_free(cache, object);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Also with free objects in the CPU's cache. */
void zones_are_refused(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    void *object = prudence_cache_alloc(cache, GFP_KERNEL);

    EXPECT(object != NULL);
    pr_info("provoked: begin\n");
    EXPECT(!prudence_cache_alloc(cache, GFP_KERNEL | GFP_DMA));
    EXPECT(!prudence_cache_alloc(cache, GFP_ATOMIC | GFP_DMA32));
    EXPECT(!prudence_kmalloc(SIZE, GFP_KERNEL | GFP_DMA));
    EXPECT(!prudence_kmalloc(SIZE, GFP_KERNEL | GFP_DMA32 | __GFP_ZERO));
    EXPECT(!prudence_kmalloc(4 * PAGE_SIZE, GFP_KERNEL | GFP_DMA));
    pr_info("provoked: end\n");
    EXPECT_EQ(STAT(cache, objects_live), 1);
    prudence_cache_free(cache, object);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Three kinds of double deferral: of a block, whose slab sees at once that it is latent; of an
 * object whose slab finds it free when both copies come back; and of one whose slab is gone by
 * then. The allocator reports each and does nothing else. */
void double_deferral_is_reported_and_all_goes_on(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 latent = totals().latent_bytes;
    void *block = prudence_kmalloc(4 * PAGE_SIZE, GFP_KERNEL), *object;
    unsigned int i;

    object = prudence_cache_alloc(cache, GFP_KERNEL);
    pr_info("provoked: begin\n");
    reader_enters();
    prudence_kfree_deferred(block);
    prudence_kfree_deferred(block);
    prudence_cache_free_deferred(cache, object);
    prudence_cache_free_deferred(cache, object);
    reader_leaves();
    for (i = 0; i < 500 && (STAT(cache, objects_latent) || totals().latent_bytes > latent); i++) {
        msleep(20);
        prudence_cache_shrink(cache);
        wake_all_cpus();
    }
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    EXPECT(totals().latent_bytes <= latent);
    EXPECT_EQ(fill(cache, 200), 200);
    for (i = 0; i < 200; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    pr_info("provoked: end\n"); /* if both copies were handed out, the second free is reported */
}

/* Replaces with interrupts on and off, an object and none, and a pointer that is no object. The old
 * object is deferred, and not written before its grace period is over. */
void replacing_defers_and_allocates(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    char *old = prudence_cache_replace(cache, NULL, GFP_KERNEL | __GFP_ZERO), *object;
    unsigned int i, deferred = 0;

    EXPECT(old && !memchr_inv(old, 0, SIZE));
    reader_enters();
    for (i = 0; i < 300; i++) {
        memset(old, 0x5a, SIZE);
        if (i % 3 == 0)
            local_irq_disable();
        object = prudence_cache_replace(cache, old, i % 3 ? GFP_KERNEL : GFP_ATOMIC);
        if (i % 3 == 0)
            local_irq_enable();
        EXPECT(!memchr_inv(old, 0x5a, SIZE));
        deferred++;
        /* On PREEMPT_RT no slab can be made with interrupts off. */
        if (!object && i % 3 == 0 && IS_ENABLED(CONFIG_PREEMPT_RT))
            object = prudence_cache_alloc(cache, GFP_KERNEL);
        EXPECT(object && object != old);
        if (!object)
            break;
        old = object;
    }
    EXPECT_EQ(STAT(cache, deferred_frees), deferred);
    EXPECT_EQ(STAT(cache, objects_live), 1);
    reader_leaves();
    pr_info("provoked: begin\n");
    object = prudence_cache_replace(cache, old + 8, GFP_KERNEL);
    pr_info("provoked: end\n");
    EXPECT_EQ(STAT(cache, deferred_frees), deferred);
    EXPECT_EQ(STAT(cache, objects_live), 2);
    prudence_cache_free(cache, object);
    prudence_cache_free(cache, old);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void objects_of_others_are_told_apart(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    void *foreign = kmalloc(SIZE, GFP_KERNEL);
    unsigned int i;

    EXPECT(!prudence_try_kfree(foreign));
    EXPECT(!prudence_try_kfree_deferred(foreign));
    EXPECT(!prudence_try_kfree(NULL));
    EXPECT(!prudence_try_kfree_deferred(NULL));
    EXPECT_EQ(prudence_ksize(foreign), 0);
    EXPECT_EQ(prudence_ksize(NULL), 0);
    EXPECT_EQ(fill(cache, 2), 2);
    EXPECT_EQ(prudence_ksize(objects[0]), SIZE);
    EXPECT(prudence_try_kfree(objects[0]));
    EXPECT(prudence_try_kfree_deferred(objects[1]));
    EXPECT_EQ(STAT(cache, frees), 1);
    EXPECT_EQ(STAT(cache, deferred_frees), 1);
    kfree(foreign);
    for (i = 0; i < 2; i++) { /* large blocks too */
        objects[i] = prudence_kmalloc(4 * PAGE_SIZE, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
        EXPECT_EQ(prudence_ksize(objects[i]), 4 * PAGE_SIZE);
        EXPECT(i ? prudence_try_kfree(objects[i]) : prudence_try_kfree_deferred(objects[i]));
    }
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
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
