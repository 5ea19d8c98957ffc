// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests of rules 1 to 8, 10 and 11 of the algorithm (docs/explanation/design.md). */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "test.h"

#define TAKEN 48 /* at most the objects of one refill */

void freed_object_comes_back_first(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    void *first = prudence_cache_alloc(cache, GFP_KERNEL), *second;

    migrate_disable();
    prudence_cache_free(cache, first);
    second = prudence_cache_alloc(cache, GFP_KERNEL);
    migrate_enable();
    EXPECT(first == second);
    prudence_cache_free(cache, second);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 1. */
void deferred_memory_is_not_written_or_reused_under_a_reader(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, j, reused = 0, written = 0;
    void *fresh;

    EXPECT_EQ(fill(cache, MANY), MANY);
    reader_enters();
    defer(cache, MANY);
    for (i = 0; i < MANY; i++) {
        fresh = prudence_cache_alloc(cache, GFP_KERNEL);
        for (j = 0; j < MANY; j += 97)
            reused += fresh == objects[j];
        prudence_cache_free(cache, fresh);
    }
    for (i = 0; i < MANY; i++)
        written += !is_untouched(objects[i]);
    EXPECT_EQ(reused, 0);
    EXPECT_EQ(written, 0);
    EXPECT_EQ(STAT(cache, objects_latent), MANY);
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 2. */
void deferred_objects_share_grace_periods(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_stats before, after;

    EXPECT_EQ(fill(cache, MANY), MANY);
    reader_enters();
    before = totals();
    defer(cache, MANY);
    after = totals();
    EXPECT(after.cookies - before.cookies <= 4);
    EXPECT_EQ(after.waits, before.waits); /* a deferral never waits */
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 3. A single grace period is enough. */
void deferred_objects_come_back_after_one_grace_period(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats before, after;
    unsigned int i;

    migrate_disable(); /* merges happen in this CPU's latent cache */
    EXPECT_EQ(fill(cache, 64), 64);
    defer(cache, 64);
    for (i = 0; i < 128; i++) /* empties the object cache and closes the batch */
        objects[64 + i] = prudence_cache_alloc(cache, GFP_KERNEL);
    synchronize_rcu();
    before = stats_of(cache);
    for (; i < 1000 && !STAT(cache, hits_after_merge); i++)
        objects[64 + i] = prudence_cache_alloc(cache, GFP_KERNEL);
    after = stats_of(cache);
    migrate_enable();
    EXPECT(after.hits_after_merge > 0);
    EXPECT(after.merged_objects > before.merged_objects);
    while (i)
        prudence_cache_free(cache, objects[64 + --i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Deferred objects are soon safe, because the allocator itself requests a grace period. */
void grace_period_is_asked_for(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_stats before, after;
    unsigned int tries = 0;

    before = totals();
    EXPECT_EQ(fill(cache, MANY), MANY);
    defer(cache, MANY);
    do {
        msleep(20);
        prudence_cache_shrink(cache);
    } while (STAT(cache, objects_latent) && ++tries < 100);
    after = totals();
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    EXPECT(after.requests > before.requests);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

#define FIRST_SIZE  96 /* of a CPU's object cache */
#define FIRST_BATCH (FIRST_SIZE / 8)

/* Allocates until refills meet the latent objects, and on. Expects that the first brings a batch,
 * one object of which serves the allocation, a later one half of the object cache, none more. */
static void refill_with(unsigned int latent)
{
    static void *more[1000];
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats before, after;
    unsigned int i, refilled, first = 0, most = 0;

    migrate_disable();
    EXPECT_EQ(fill(cache, 256), 256);
    reader_enters();
    defer(cache, latent);
    for (i = 0; i < 1000; i++) {
        before = stats_of(cache);
        more[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        after = stats_of(cache);
        refilled = after.refilled_objects - before.refilled_objects;
        EXPECT(refilled <= after.object_cache_size / 2);
        if (before.object_cache_size != FIRST_SIZE || after.refills == before.refills)
            continue;
        if (!first)
            first = refilled + 1;
        most = max(most, refilled + 1);
    }
    EXPECT_EQ(first, FIRST_BATCH);
    if (latent + FIRST_BATCH <= FIRST_SIZE) /* with more it grows */
        EXPECT_EQ(most, FIRST_SIZE / 2);
    migrate_enable();
    reader_leaves();
    for (i = 0; i < 1000; i++)
        prudence_cache_free(cache, more[i]);
    for (i = latent; i < 256; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 3. Refills leave room for what is latent ... */
void refill_leaves_room_for_latent_objects(void)
{
    refill_with(2 * FIRST_BATCH);
    refill_with(FIRST_SIZE / 2);
}

/* ... also if that is as much as the object cache holds (ADR 139). */
void refill_brings_half_with_many_latent_objects(void)
{
    refill_with(FIRST_SIZE - FIRST_BATCH);
    refill_with(FIRST_SIZE);
}

/* Rule 5. Returns the number of objects that the first free onto a full object cache flushes. */
static u64 flushed_at_once(unsigned int latent)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 flushed;
    unsigned int i;

    migrate_disable();
    EXPECT_EQ(fill(cache, MANY), MANY);
    reader_enters();
    defer(cache, latent);
    for (i = latent; i < MANY && !STAT(cache, flushes); i++)
        prudence_cache_free(cache, objects[i]);
    flushed = STAT(cache, flushed_objects);
    for (; i < MANY; i++)
        prudence_cache_free(cache, objects[i]);
    reader_leaves();
    migrate_enable();
    EXPECT(flushed > 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    return flushed;
}

void flush_grows_with_latent_objects(void)
{
    EXPECT(flushed_at_once(FIRST_SIZE - 4) > flushed_at_once(0));
}

/* Rule 6. The caller stays on its CPU, where the helper comes unless it is isolated. Large objects
 * make the latent cache reach its limit after a few rounds, and then the free objects do not
 * fit. */
static long preflush_here(void *unused)
{
    struct prudence_cache *cache = cache_of(16 * SIZE);
    bool isolated = !housekeeping_cpu(raw_smp_processor_id(), HK_TYPE_DOMAIN);
    unsigned int tries = 0, most = isolated ? 40 : 400, i;

    EXPECT_EQ(fill(cache, RING), RING);
    reader_enters();
    while (!STAT(cache, preflushed_objects) && tries++ < most) {
        for (i = 400; i < 600; i++)
            prudence_cache_free(cache, objects[i]);
        defer(cache, 400);
        msleep(20); /* lets this CPU idle */
        EXPECT_EQ(fill(cache, 600), 600);
    }
    EXPECT_EQ(STAT(cache, preflushed_objects) > 0, !isolated);
    reader_leaves();
    defer(cache, RING);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    return 0;
}

void latent_objects_are_preflushed_in_idle_time(void)
{
    migrate_disable();
    preflush_here(NULL);
    migrate_enable();
}

/* The helper serves the last CPU and then the first, while a reader occupies the last. */
void preflushing_does_not_wait_for_the_cpu_it_served_last(void)
{
    work_on_cpu(cpumask_last(cpu_online_mask), preflush_here, NULL);
    work_on_cpu(cpumask_first(cpu_online_mask), preflush_here, NULL);
}

/*
 * Returns how many objects were merged into the object cache without a call, at least. Decay puts
 * objects that it merges into their slabs by flushes, and a node merges what was moved there.
 */
static s64 merged_without_a_call(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats = stats_of(cache);

    return stats.merged_objects - stats.flushed_objects - stats.preflushed_objects -
           stats.overflowed_objects;
}

#define SAFE   60 /* deferred, and most of them safe when a pre-flush is asked for */
#define FREE   36 /* in the object cache, which also has room for the safe ones */
#define UNSAFE 24 /* deferred last; they close a batch, and with them not all objects fit */

/* Prepares a pre-flush on this CPU, and returns whether it merged safe objects before decay took
 * them. The cache is a new one, whose sizes are known. No call merges: none finds the object cache
 * empty, or the latent cache full. */
static bool safe_objects_are_merged(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int count = fill(cache, SAFE + FREE + UNSAFE), waits = 0, i;
    bool merged;

    while (STAT(cache, objects_cached) && count < MANY)
        objects[count++] = prudence_cache_alloc(cache, GFP_KERNEL);
    defer(cache, SAFE);
    synchronize_rcu();
    for (i = SAFE; i < SAFE + FREE; i++)
        prudence_cache_free(cache, objects[i]);
    for (; i < SAFE + FREE + UNSAFE; i++)
        prudence_cache_free_deferred(cache, objects[i]);
    do {
        msleep(20); /* lets this CPU idle */
        merged = merged_without_a_call(cache) > 0;
    } while (!merged && waits++ < 10);
    for (; i < count; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    return merged;
}

/* Rule 6. The helper may find the CPU busy, so there are several tries. */
void preflush_merges_what_is_safe(void)
{
    unsigned int tries = 0;

    migrate_disable();
    while (!safe_objects_are_merged() && ++tries < 50)
        ;
    migrate_enable();
    EXPECT(tries < 50);
}

/* Rule 10. */
void object_cache_grows_with_demand(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 before = STAT(cache, object_cache_size), churns;
    unsigned int i, j;

    migrate_disable();
    for (i = 0; i < 60; i++) {
        EXPECT_EQ(fill(cache, MANY), MANY);
        for (j = 0; j < MANY; j++)
            prudence_cache_free(cache, objects[j]);
    }
    EXPECT(STAT(cache, object_cache_size) > before);
    churns = STAT(cache, object_cache_churns);
    EXPECT_EQ(fill(cache, MANY), MANY);
    for (j = 0; j < MANY; j++)
        prudence_cache_free(cache, objects[j]);
    EXPECT(STAT(cache, object_cache_churns) - churns <= 2);
    migrate_enable();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rules 4 and 8. */
void full_latent_cache_overflows_into_latent_slabs(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats stats;

    EXPECT_EQ(fill(cache, RING), RING);
    reader_enters();
    defer(cache, RING);
    stats = stats_of(cache);
    EXPECT_EQ(stats.objects_latent, RING);
    EXPECT_EQ(stats.deferred_frees, RING);
    EXPECT(stats.overflowed_objects + stats.preflushed_objects > 0);
    EXPECT(stats.premoved_slabs > 0);
    EXPECT_EQ(stats.shrinks, 0);
    reader_leaves();
    prudence_cache_shrink(cache); /* closes the open batch and merges closed ones */
    synchronize_rcu();
    prudence_cache_shrink(cache);
    stats = stats_of(cache);
    EXPECT_EQ(stats.objects_latent, 0);
    EXPECT_EQ(stats.slabs_now, 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Waits until the grace period that ends at `state` begins. Returns false if another waits for a
 * reader. */
static bool grace_period_begins(unsigned long state)
{
    unsigned int tries;

    for (tries = 0; tries < 100 && get_state_synchronize_rcu() == state; tries++)
        msleep(20);
    msleep(500); /* CPUs without a reader report in that time */
    return get_state_synchronize_rcu() != state;
}

static void grace_period_ends(unsigned long state)
{
    unsigned int tries;

    for (tries = 0; tries < 500 && !poll_state_synchronize_rcu(state); tries++)
        msleep(20);
    EXPECT(poll_state_synchronize_rcu(state));
}

/*
 * Defers a few objects that wait for a grace period in progress, then many for the next. When the
 * latent cache is full, the first objects leave with some of the others. After the first grace
 * period, a reader that has entered since still prevents the end of the next.
 */
void overflowing_objects_wait_for_their_own_grace_period(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned long first;

    migrate_disable();
    EXPECT_EQ(fill(cache, RING), RING);
    reader_enters();
    defer(cache, 10);
    first = get_state_synchronize_rcu();
    prudence_cache_shrink(cache);      /* closes the batch, which requests a grace period */
    if (!grace_period_begins(first)) { /* others requested one that waits for the reader */
        next_reader_enters();
        reader_before_leaves();
        EXPECT(grace_period_begins(first));
    }
    next_reader_enters();
    for (unsigned int i = 10; i < RING; i++)
        prudence_cache_free_deferred(cache, objects[i]);
    EXPECT(STAT(cache, overflowed_objects) + STAT(cache, preflushed_objects) > 0);
    reader_before_leaves();
    grace_period_ends(first);
    prudence_cache_shrink(cache);
    EXPECT(STAT(cache, objects_latent) >= RING - 10);
    reader_leaves();
    migrate_enable();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

static unsigned int filled; /* entries of `objects` in use */

static void fill_whole_slabs(struct prudence_cache *cache)
{
    unsigned int capacity = 0, i;

    filled = fill(cache, RING);
    for (i = 0; i < filled; i++)
        capacity += virt_to_head_page(objects[i]) == virt_to_head_page(objects[0]);
    while (capacity && filled % capacity && filled < RING + MANY)
        objects[filled++] = prudence_cache_alloc(cache, GFP_KERNEL);
    EXPECT(capacity && filled % capacity == 0);
}

/* Releases the objects of a slab from index `first` up to, but without, `end`. */
static void release_some(struct prudence_cache *cache, const struct page *slab, unsigned int first,
                         unsigned int end,
                         void (*release)(struct prudence_cache *cache, void *object))
{
    unsigned int i, seen = 0;

    for (i = 0; i < filled; i++) {
        if (virt_to_head_page(objects[i]) != slab)
            continue;
        if (seen >= first && seen < end)
            release(cache, objects[i]);
        seen++;
    }
}

/* Rule 7. Two slabs have free objects. In one, four objects are live; in the other three, with
 * three more latent. */
static void refill_chooses(unsigned int lives, unsigned int drains)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, elsewhere = 0;
    struct page *slabs[2];
    void *taken[TAKEN];

    fill_whole_slabs(cache);
    slabs[0] = virt_to_head_page(objects[0]);
    slabs[1] = virt_to_head_page(objects[filled - 1]);
    reader_enters();
    release_some(cache, slabs[drains], 0, 3, prudence_cache_free_deferred);
    for (i = 0; i < filled; i++) /* enough to make those three overflow into their slab */
        if (virt_to_head_page(objects[i]) != slabs[0] && virt_to_head_page(objects[i]) != slabs[1])
            prudence_cache_free_deferred(cache, objects[i]);
    EXPECT(STAT(cache, overflowed_objects) + STAT(cache, preflushed_objects) > 0);
    release_some(cache, slabs[drains], 6, UINT_MAX, prudence_cache_free);
    release_some(cache, slabs[lives], 4, UINT_MAX, prudence_cache_free);
    prudence_cache_shrink(cache); /* flushes free objects to their slabs */
    for (i = 0; i < TAKEN; i++) {
        taken[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        elsewhere += virt_to_head_page(taken[i]) != slabs[lives];
    }
    EXPECT_EQ(elsewhere, 0);
    for (i = 0; i < TAKEN; i++)
        prudence_cache_free(cache, taken[i]);
    release_some(cache, slabs[drains], 3, 6, prudence_cache_free);
    release_some(cache, slabs[lives], 0, 4, prudence_cache_free);
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void latent_objects_do_not_count_when_a_slab_is_chosen(void)
{
    migrate_disable();
    refill_chooses(0, 1); /* in either order */
    refill_chooses(1, 0);
    migrate_enable();
}

void shrink_never_takes_a_latent_slab(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 slabs;

    EXPECT_EQ(fill(cache, MANY), MANY);
    slabs = STAT(cache, slabs_now);
    reader_enters();
    defer(cache, MANY);
    prudence_cache_shrink(cache);
    EXPECT(STAT(cache, slabs_now) * 128 >= MANY);
    EXPECT(STAT(cache, slabs_now) <= slabs);
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 11. */
static void free_here(void *cache)
{
    prudence_cache_free(cache, objects[0]);
    objects[0] = NULL;
}

void objects_freed_on_another_cpu_go_home(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, cpu;

    for (i = 0; i < 500; i++) {
        for_each_online_cpu(cpu) {
            objects[0] = prudence_cache_alloc(cache, GFP_KERNEL);
            smp_call_function_single(cpu, free_here, cache, 1);
        }
    }
    prudence_cache_shrink(cache);
    EXPECT_EQ(STAT(cache, objects_live), 0);
    EXPECT_EQ(STAT(cache, slabs_now), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
