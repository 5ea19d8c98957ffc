// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Tests of caches that move to Prudence (prudence_tree.h), run when a kernel with CONFIG_KUNIT has
 * booted. Their cache moves if prudence_tree= lists `all` or `kunit`; otherwise most are skipped.
 */
#include <kunit/test.h>
#include <linux/prudence.h>
#include <linux/prudence_tree.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#define OBJECTS 4000 /* more than a CPU caches at first */
#define MARK    0x50727564u

static struct prudence_tree kunit_tree = {.name = "kunit", .head = PRUDENCE_TREE_NO_HEAD};
static struct kmem_cache *slub;
static u32 *before; /* allocated before the cache moved */
static u32 *objects[OBJECTS];

unsigned long rcu_get_gp_seq(void); /* kernel/rcu/rcu.h */

static void construct(void *object)
{
    *(u32 *)object = MARK;
}

static void need_change(struct kunit *test)
{
    if (!prudence_tree_changed(&kunit_tree))
        kunit_skip(test, "the cache is SLUB's: prudence_tree= does not name it");
}

/* Runs even if the cache has not moved: either way an older object belongs to SLUB. */
static void objects_from_before_stay_with_slub(struct kunit *test)
{
    KUNIT_ASSERT_NOT_NULL(test, before);
    KUNIT_EXPECT_FALSE(test, prudence_tree_defer(&kunit_tree, before));
    KUNIT_EXPECT_EQ(test, *before, MARK);
    prudence_tree_free(&kunit_tree, slub, before);
    before = NULL;
}

static void nothing_comes_back_in_the_section_it_was_deferred_in(struct kunit *test)
{
    unsigned int same = 0, count = 0;
    u32 *object;

    need_change(test);
    object = prudence_tree_alloc(&kunit_tree, slub, GFP_KERNEL);
    KUNIT_ASSERT_NOT_NULL(test, object);
    rcu_read_lock();
    KUNIT_EXPECT_TRUE(test, prudence_tree_defer(&kunit_tree, object));
    for (; count < OBJECTS; count++) {
        objects[count] = prudence_tree_alloc(&kunit_tree, slub, GFP_NOWAIT);
        if (!objects[count])
            break;
        same += objects[count] == object;
    }
    KUNIT_EXPECT_EQ(test, *object, MARK);
    rcu_read_unlock();
    KUNIT_EXPECT_EQ(test, same, 0u);
    KUNIT_EXPECT_EQ(test, count, (unsigned int)OBJECTS);
    prudence_tree_free_bulk(&kunit_tree, slub, count, (void **)objects);
}

static void objects_are_as_the_constructor_left_them(struct kunit *test)
{
    need_change(test);
    for (unsigned int i = 0; i < 100; i++) {
        u32 *object = prudence_tree_alloc(&kunit_tree, slub, GFP_KERNEL);

        KUNIT_ASSERT_NOT_NULL(test, object);
        KUNIT_EXPECT_EQ(test, *object, MARK);
        KUNIT_EXPECT_TRUE(test, prudence_tree_defer(&kunit_tree, object));
    }
}

static u64 hastened(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.hastened;
}

/* Defers `count` objects, inside the caller's read section if any. */
static void defer_all(struct kunit *test, unsigned int count)
{
    for (; count; count--) {
        u32 *object = prudence_tree_alloc(&kunit_tree, slub, GFP_NOWAIT);

        KUNIT_ASSERT_NOT_NULL(test, object);
        KUNIT_EXPECT_TRUE(test, prudence_tree_defer(&kunit_tree, object));
    }
}

static bool is_under_way(void)
{
    return rcu_get_gp_seq() & 3; /* the state bits; 0 between two grace periods */
}

/* Defers 100 objects. If that hastened a grace period, defers 50 more on the same CPU, adds the
 * times that these did to *then, and returns true. */
static bool defer_some(struct kunit *test, u64 *then)
{
    u64 before = hastened(), now;

    preempt_disable();
    defer_all(test, 100);
    now = hastened();
    if (now != before) {
        defer_all(test, 50);
        *then += hastened() - now;
    }
    preempt_enable();
    cond_resched(); /* lets RCU's thread begin a grace period */
    return now != before;
}

/* 32 KB (more than 150 of these objects) hasten a grace period; the next 50 objects do not. Takes
 * ten samples, because one may meet the last time allowed in a grace period. */
static void much_that_waits_hastens_a_grace_period(struct kunit *test)
{
    unsigned int rounds = 0, times = 0;
    u64 then = 0;

    need_change(test);
    for (; times < 10 && rounds < 10000; rounds++)
        times += defer_some(test, &then);
    KUNIT_EXPECT_EQ(test, times, 10u);
    KUNIT_EXPECT_EQ(test, then, (u64)0);
}

/* No grace period that begins in the read section can end there, although the test defers about
 * 24 times the bytes that hasten one. */
static void hastens_twice_in_a_grace_period_at_most(struct kunit *test)
{
    unsigned long begun;
    u64 before;

    need_change(test);
    for (unsigned int i = 0; !is_under_way() && i < 1000; i++) {
        start_poll_synchronize_rcu();
        schedule_timeout_uninterruptible(1);
    }
    rcu_read_lock();
    begun = rcu_get_gp_seq() / 4;
    before = hastened();
    KUNIT_EXPECT_TRUE(test, is_under_way());
    defer_all(test, OBJECTS);
    begun = rcu_get_gp_seq() / 4 - begun + 1;
    KUNIT_EXPECT_LE(test, begun, 2ul);
    KUNIT_EXPECT_LE(test, hastened() - before, (u64)(2 * begun));
    rcu_read_unlock();
}

/* ----------------------------------------------------------------------------- kmalloc's caches */

#define BYTES 64

struct small {
    u64 mark;
    struct rcu_head rcu;
    char rest[BYTES - sizeof(u64) - sizeof(struct rcu_head)];
};

/* Returns an object of kmalloc that is Prudence's. */
static void *kmalloc_ours(struct kunit *test)
{
    void *object = kmalloc(BYTES, GFP_KERNEL);

    KUNIT_ASSERT_NOT_NULL(test, object);
    if (!prudence_ksize(object)) {
        kfree(object);
        kunit_skip(test, "kmalloc-64 is SLUB's (KIND=kmalloc, prudence_tree=kmalloc-64)");
    }
    return object;
}

static void kmalloc_does_not_return_what_kfree_rcu_has_in_the_same_section(struct kunit *test)
{
    struct small *object = kmalloc_ours(test), **later = (struct small **)objects;
    unsigned int same = 0, count = 0;

    object->mark = MARK;
    rcu_read_lock();
    kfree_rcu(object, rcu);
    for (; count < OBJECTS; count++) {
        later[count] = kmalloc(BYTES, GFP_NOWAIT);
        if (!later[count])
            break;
        same += later[count] == object;
    }
    KUNIT_EXPECT_EQ(test, object->mark, (u64)MARK);
    rcu_read_unlock();
    KUNIT_EXPECT_EQ(test, same, 0u);
    KUNIT_EXPECT_EQ(test, count, (unsigned int)OBJECTS);
    kfree_bulk(count, (void **)later);
}

static u64 latent_bytes(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.latent_bytes;
}

/* Only a fourth need still be latent, because grace periods may end. Memory of earlier tests
 * goes first. */
static void kfree_rcu_without_a_head_defers(struct kunit *test)
{
    u64 before;

    for (unsigned int i = 0; i < OBJECTS; i++)
        objects[i] = kmalloc_ours(test);
    synchronize_rcu();
    if (prudence_tree_cache(&kunit_tree))
        prudence_cache_shrink(prudence_tree_cache(&kunit_tree));
    before = latent_bytes();
    for (unsigned int i = 0; i < OBJECTS; i++)
        kvfree_rcu(objects[i]);
    KUNIT_EXPECT_GE(test, latent_bytes(), before + OBJECTS * BYTES / 4);
}

static void kmalloc_of_a_node_and_from_before_stays_with_slub(struct kunit *test)
{
    void *mixed[3] = {kmalloc_ours(test), kmalloc_node(BYTES, GFP_KERNEL, numa_mem_id()),
                      kmalloc_ours(test)};
    struct small *other = kmalloc_node(BYTES, GFP_KERNEL, numa_mem_id());

    KUNIT_ASSERT_NOT_NULL(test, mixed[1]);
    KUNIT_ASSERT_NOT_NULL(test, other);
    KUNIT_EXPECT_EQ(test, prudence_ksize(mixed[1]), (size_t)0);
    kfree_bulk(ARRAY_SIZE(mixed), mixed); /* of both allocators */
    kfree_rcu(other, rcu);
}

static void sizes_of_kmalloc_are_as_they_were(struct kunit *test)
{
    char *object = kmalloc_ours(test), *grown;

    KUNIT_EXPECT_EQ(test, ksize(object), (size_t)BYTES);
    KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)object, BYTES));
    memset(object, 0x5a, BYTES);
    grown = krealloc(object, 10 * BYTES, GFP_KERNEL);
    KUNIT_ASSERT_NOT_NULL(test, grown);
    KUNIT_EXPECT_EQ(test, grown[0], (char)0x5a);
    KUNIT_EXPECT_EQ(test, grown[BYTES - 1], (char)0x5a);
    kfree_sensitive(grown);
    object = kzalloc(BYTES, GFP_KERNEL);
    KUNIT_ASSERT_NOT_NULL(test, object);
    KUNIT_EXPECT_NULL(test, memchr_inv(object, 0, BYTES));
    kfree(object);
}

static int start(struct kunit_suite *suite)
{
    slub = kmem_cache_create("prudence_kunit", 200, 0, 0, construct);
    if (!slub)
        return -ENOMEM;
    before = kmem_cache_alloc(slub, GFP_KERNEL);
    prudence_tree_add(&kunit_tree, slub);
    return 0;
}

static void stop(struct kunit_suite *suite)
{
    prudence_tree_remove(&kunit_tree);
    kmem_cache_destroy(slub);
}

static struct kunit_case cases[] = {
    KUNIT_CASE(objects_from_before_stay_with_slub),
    KUNIT_CASE(nothing_comes_back_in_the_section_it_was_deferred_in),
    KUNIT_CASE(objects_are_as_the_constructor_left_them),
    KUNIT_CASE(much_that_waits_hastens_a_grace_period),
    KUNIT_CASE(hastens_twice_in_a_grace_period_at_most),
    KUNIT_CASE(kmalloc_does_not_return_what_kfree_rcu_has_in_the_same_section),
    KUNIT_CASE(kfree_rcu_without_a_head_defers),
    KUNIT_CASE(kmalloc_of_a_node_and_from_before_stays_with_slub),
    KUNIT_CASE(sizes_of_kmalloc_are_as_they_were),
    {},
};

static struct kunit_suite suite = {
    .name = "prudence_tree", .suite_init = start, .suite_exit = stop, .test_cases = cases};
kunit_test_suite(suite);
