// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_test.ko: the rules of the algorithm and of the interface, as KTAP in the kernel's log when
 * it is loaded. (Debian's kernels have no KUnit.) A test is a function that returns; EXPECT notes what
 * is wrong and goes on. Each has a cache of its own.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kasan.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "compat_timer.h"

#define SIZE 64
#define MANY 2000
#define RING 8192

static int failures; /* of the test that runs */
static int failed;
module_param(failed, int, 0444);
MODULE_PARM_DESC(failed, "tests that failed");

static void **objects;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition) && ++failures <= 5)                                                       \
            pr_err("# %s:%d: not true: %s\n", __func__, __LINE__, #condition);                     \
    } while (0)

#define EXPECT_EQ(left, right)                                                                     \
    do {                                                                                           \
        s64 l_ = (s64)(left), r_ = (s64)(right);                                                   \
                                                                                                   \
        if (l_ != r_ && ++failures <= 5)                                                           \
            pr_err("# %s:%d: %s is %lld, not %lld (%s)\n", __func__, __LINE__, #left, l_, r_,      \
                   #right);                                                                        \
    } while (0)

static struct prudence_cache *cache_of(size_t size)
{
    return prudence_cache_create("test", size, 0, 0, NULL);
}

static struct prudence_cache_stats stats_of(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats;

    prudence_cache_stats(cache, &stats);
    return stats;
}

/* One of them, without all of them on the caller's stack. */
static noinline u64 stat_at(struct prudence_cache *cache, size_t offset)
{
    struct prudence_cache_stats stats = stats_of(cache);

    return *(u64 *)((char *)&stats + offset);
}
#define STAT(cache, member) stat_at(cache, offsetof(struct prudence_cache_stats, member))

static unsigned int fill(struct prudence_cache *cache, unsigned int count)
{
    unsigned int i;

    for (i = 0; i < count; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        if (!objects[i])
            break;
        memset(objects[i], 0x5a, SIZE);
    }
    return i;
}

static void defer(struct prudence_cache *cache, unsigned int count)
{
    unsigned int i;

    for (i = 0; i < count; i++)
        prudence_cache_free_deferred(cache, objects[i]);
}

static bool is_untouched(const u8 *object)
{
    return !memchr_inv(object, 0x5a, SIZE);
}

/* --- a reader that stays until it is told to leave --- */
static struct task_struct *reader;
static bool reader_inside, reader_may_leave;

static int read_on(void *unused)
{
    rcu_read_lock();
    WRITE_ONCE(reader_inside, true);
    while (!READ_ONCE(reader_may_leave))
        cpu_relax();
    rcu_read_unlock();
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

/* On another CPU than the caller's, who may be bound to its own and would never run again. */
static void reader_enters(void)
{
    unsigned int cpu;

    migrate_disable();
    cpu = cpumask_last(cpu_online_mask);
    if (cpu == raw_smp_processor_id())
        cpu = cpumask_first(cpu_online_mask);
    WRITE_ONCE(reader_inside, false);
    WRITE_ONCE(reader_may_leave, false);
    reader = kthread_create(read_on, NULL, "prudence_reader");
    kthread_bind(reader, cpu);
    wake_up_process(reader);
    while (!READ_ONCE(reader_inside))
        schedule_timeout_uninterruptible(1);
    migrate_enable();
}

static void reader_leaves(void)
{
    WRITE_ONCE(reader_may_leave, true);
    kthread_stop(reader);
    synchronize_rcu();
}

/* ------------------------------------------------------------------------------------- the rules */

static void freed_object_comes_back_first(void)
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
static void deferred_memory_is_not_written_or_reused_under_a_reader(void)
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
static void deferred_objects_share_grace_periods(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_stats before, after;

    EXPECT_EQ(fill(cache, MANY), MANY);
    reader_enters();
    prudence_stats(&before);
    defer(cache, MANY);
    prudence_stats(&after);
    EXPECT(after.cookies - before.cookies <= 4);
    EXPECT_EQ(after.waits, before.waits); /* a deferral never waits */
    reader_leaves();
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 3, and one grace period is enough. */
static void deferred_objects_come_back_after_one_grace_period(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats before, after;
    unsigned int i;

    migrate_disable(); /* it is this CPU's latent cache that is merged */
    EXPECT_EQ(fill(cache, 64), 64);
    defer(cache, 64);
    for (i = 0; i < 128; i++) /* the object cache's; the last miss closes the batch */
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

/* Without anybody's help a grace period is asked for: a deferral's batch is safe soon. */
static void grace_period_is_asked_for(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_stats before, after;
    unsigned int tries = 0;

    prudence_stats(&before);
    EXPECT_EQ(fill(cache, MANY), MANY);
    defer(cache, MANY);
    do {
        msleep(20);
        prudence_cache_shrink(cache);
    } while (STAT(cache, objects_latent) && ++tries < 100);
    prudence_stats(&after);
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    EXPECT(after.requests > before.requests);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 3: refill takes o - d. */
static void refill_leaves_room_for_latent_objects(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    struct prudence_cache_stats before, after;
    unsigned int i;

    EXPECT_EQ(fill(cache, 256), 256);
    reader_enters();
    migrate_disable();
    defer(cache, 200);
    for (i = 0; i < 3000; i++) { /* until the next refill is one with latent objects about */
        before = stats_of(cache);
        objects[i < 200 ? i : i + 56] = prudence_cache_alloc(cache, GFP_KERNEL);
        after = stats_of(cache);
        if (after.refills > before.refills && after.object_cache_size == 256)
            EXPECT(after.refilled_objects - before.refilled_objects <= 64);
    }
    migrate_enable();
    reader_leaves();
    for (i = 0; i < 3000; i++)
        prudence_cache_free(cache, objects[i < 200 ? i : i + 56]);
    for (i = 200; i < 256; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 5: what the first free onto a full object cache flushes. */
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

static void flush_grows_with_latent_objects(void)
{
    EXPECT(flushed_at_once(200) > flushed_at_once(0));
}

/* Rule 6. Of large objects, so that the latent cache meets its limit after a few rounds; then what is free does
 * not fit beside it. */
static void latent_objects_are_preflushed_in_idle_time(void)
{
    struct prudence_cache *cache = cache_of(16 * SIZE);
    unsigned int tries = 0, i;

    migrate_disable();
    EXPECT_EQ(fill(cache, RING), RING);
    reader_enters();
    while (!STAT(cache, preflushed_objects) && tries++ < 400) {
        for (i = 400; i < 600; i++)
            prudence_cache_free(cache, objects[i]);
        defer(cache, 400);
        msleep(20); /* this CPU idles */
        EXPECT_EQ(fill(cache, 600), 600);
    }
    EXPECT(STAT(cache, preflushed_objects) > 0);
    reader_leaves();
    migrate_enable();
    defer(cache, RING);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 10. */
static void object_cache_grows_with_demand(void)
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
static void full_latent_cache_overflows_into_latent_slabs(void)
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
    prudence_cache_shrink(cache); /* closes; what is closed already is merged */
    synchronize_rcu();
    prudence_cache_shrink(cache);
    stats = stats_of(cache);
    EXPECT_EQ(stats.objects_latent, 0);
    EXPECT_EQ(stats.slabs_now, 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

static void shrink_never_takes_a_latent_slab(void)
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

/* Rule 9. The system has no pages beyond those that are in use now. */
static u64 pages_there;

static bool no_memory(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.page_bytes >= pages_there;
}

static void memory_ends_here(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    pages_there = stats.page_bytes;
    prudence_inject_failures(no_memory);
}

static void allocation_waits_for_latent_memory_before_it_fails(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, more = 0;
    void *object;

    EXPECT_EQ(fill(cache, MANY), MANY);
    memory_ends_here();
    while (more < MANY && (object = prudence_cache_alloc(cache, GFP_NOWAIT | __GFP_NOWARN)))
        objects[MANY + more++] = object;
    EXPECT(more < MANY); /* GFP_NOWAIT fails */
    defer(cache, MANY);
    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        EXPECT(objects[i] != NULL); /* what was deferred is enough */
    }
    EXPECT(STAT(cache, pressure_waits) > 0);
    prudence_inject_failures(NULL);
    for (i = 0; i < MANY + more; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Rule 11. */
static void free_here(void *cache)
{
    prudence_cache_free(cache, objects[0]);
    objects[0] = NULL;
}

static void objects_freed_on_another_cpu_go_home(void)
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

/* --------------------------------------------------------------------------------- the interface */

static void figures_are_exact(void)
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

static void every_size_is_aligned_and_apart(void)
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

static unsigned int constructed;

static void construct(void *object)
{
    memset(object, 0x5a, SIZE);
    constructed++;
}

static void type_safe_memory_stays_constructed(void)
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

static atomic_t in_interrupt_failed;

static void use_in_interrupt(void *cache)
{
    unsigned int i;

    for (i = 0; i < 300; i++) {
        void *object = prudence_cache_alloc(cache, GFP_ATOMIC);

        if (!object)
            atomic_inc(&in_interrupt_failed);
        else if (i % 3)
            prudence_cache_free_deferred(cache, object);
        else
            prudence_cache_free(cache, object);
    }
}

static long use_in_task(void *cache)
{
    use_in_interrupt(cache);
    return 0;
}

/* On PREEMPT_RT no pages can be had there: what tasks have left behind is all there is. */
static void hard_interrupts_may_do_everything(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, cpu;

    atomic_set(&in_interrupt_failed, 0);
    for_each_online_cpu(cpu)
        work_on_cpu(cpu, use_in_task, cache);
    EXPECT_EQ(atomic_read(&in_interrupt_failed), 0);
    for (i = 0; i < 20; i++)
        on_each_cpu(use_in_interrupt, cache, 1);
    if (IS_ENABLED(CONFIG_PREEMPT_RT))
        EXPECT(atomic_read(&in_interrupt_failed) < 20 * 300 * num_online_cpus());
    else
        EXPECT_EQ(atomic_read(&in_interrupt_failed), 0);
    EXPECT_EQ(STAT(cache, objects_live), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

#define BLOCKS      20
#define BLOCK_BYTES (16 * PAGE_SIZE)

static void free_blocks(void *unused)
{
    unsigned int i;

    for (i = 0; i < BLOCKS; i++)
        prudence_kfree(objects[i]);
}

static u64 page_bytes(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.page_bytes;
}

/* A little later where the page allocator's locks may not be taken there (PREEMPT_RT). */
static void pages_that_an_interrupt_frees_are_given_back(void)
{
    unsigned int i;
    u64 used;

    for (i = 0; i < BLOCKS; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    used = page_bytes();
    smp_call_function_single(cpumask_last(cpu_online_mask), free_blocks, NULL, 1);
    for (i = 0; i < 250 && page_bytes() > used - BLOCKS * BLOCK_BYTES; i++)
        msleep(20);
    EXPECT(page_bytes() <= used - BLOCKS * BLOCK_BYTES);
}

/* A use before the end of the grace period is none of KASAN's business; one after it is. */
#ifdef CONFIG_KASAN_GENERIC
static noinline void use_after_the_grace_period(const char *object)
{
    READ_ONCE(*object);
}

static u8 shadow_of(const void *object)
{
    return *(const u8 *)kasan_mem_to_shadow(object);
}

static void kasan_knows_deferred_objects(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i;

    EXPECT_EQ(fill(cache, 256), 256);
    EXPECT_EQ(shadow_of(objects[7]), 0);
    reader_enters();
    defer(cache, 200);
    prudence_cache_shrink(cache);
    EXPECT_EQ(shadow_of(objects[7]), 0);
    EXPECT(is_untouched(objects[7]));
    reader_leaves();
    synchronize_rcu();
    prudence_cache_shrink(cache);
    EXPECT(shadow_of(objects[7]) != 0);
    pr_info("provoked: begin\n");
    use_after_the_grace_period(objects[7]);
    pr_info("provoked: end\n");
    prudence_cache_free(cache, objects[255]);
    EXPECT(shadow_of(objects[255]) != 0);
    objects[255] = prudence_cache_alloc(cache, GFP_KERNEL);
    EXPECT_EQ(shadow_of(objects[255]), 0);
    for (i = 200; i < 256; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
#endif

static void dead_cpu_leaves_nothing_behind(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int cpu = cpumask_last(cpu_online_mask);

    work_on_cpu(cpu, use_in_task, cache);
    EXPECT(STAT(cache, objects_cached) > 0);
    EXPECT_EQ(remove_cpu(cpu), 0);
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0); /* though it is away */
    cache = cache_of(SIZE);
    EXPECT_EQ(add_cpu(cpu), 0);
    smp_call_function_single(cpu, use_in_interrupt, cache, 1);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* --- a CPU defers in hard interrupts until it is dead --- */
static struct hrtimer last_timer;
static atomic_t next_block;

static enum hrtimer_restart defer_next(struct hrtimer *timer)
{
    int i = atomic_fetch_inc(&next_block);

    if (i >= MANY)
        return HRTIMER_NORESTART;
    prudence_kfree_deferred(objects[i]); /* a large block, which asks for a grace period at once */
    hrtimer_forward_now(timer, ns_to_ktime(250000));
    return HRTIMER_RESTART;
}

static void start_deferring(void *unused)
{
    compat_hrtimer_setup(&last_timer, defer_next);
    hrtimer_start(&last_timer, ns_to_ktime(250000), HRTIMER_MODE_REL_PINNED_HARD);
}

static u64 requests(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats.requests;
}

/* Keeps the CPU from stopping, and so the one that dies alive for longer. */
static int stay_awake(void *unused)
{
    while (!kthread_should_stop()) {
        preempt_disable();
        mdelay(5);
        preempt_enable();
        cond_resched();
    }
    return 0;
}

static void cpu_defers_until_it_is_dead(unsigned int cpu)
{
    struct task_struct *other = kthread_create(stay_awake, NULL, "prudence_awake");
    unsigned int i;

    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_kmalloc(2 * PAGE_SIZE, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    kthread_bind(other, cpumask_first(cpu_online_mask));
    wake_up_process(other);
    atomic_set(&next_block, 0);
    smp_call_function_single(cpu, start_deferring, NULL, 1);
    EXPECT_EQ(remove_cpu(cpu), 0);
    kthread_stop(other);
    hrtimer_cancel(&last_timer);
    for (i = atomic_read(&next_block); i < MANY; i++)
        prudence_kfree(objects[i]);
}

/* Where irq_work is run by threads, it may stay with them. Three rounds of five find it. */
static void dying_cpu_keeps_no_request_to_itself(void)
{
    unsigned int rounds = IS_ENABLED(CONFIG_PREEMPT_RT) ? 4 : 1;
    unsigned int i, wait, cpu = cpumask_last(cpu_online_mask);
    u64 before;

    for (i = 0; i < rounds; i++) {
        cpu_defers_until_it_is_dead(cpu);
        synchronize_rcu(); /* the next cookie is another */
        before = requests();
        prudence_kfree_deferred(prudence_kmalloc(2 * PAGE_SIZE, GFP_KERNEL));
        for (wait = 0; wait < 250 && requests() == before; wait++)
            msleep(20);
        EXPECT(requests() > before);
        EXPECT_EQ(add_cpu(cpu), 0);
    }
}

static void destroy_waits_for_nobody_else(void)
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

static void invalid_caches_are_refused(void)
{
    pr_info("provoked: begin\n");
    EXPECT(prudence_cache_create("test", 0, 0, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("test", 64, 24, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("", 64, 0, 0, NULL) == NULL);
    EXPECT(prudence_cache_create("test", 64, 0, 0x80, NULL) == NULL);
    pr_info("provoked: end\n");
}

static void pointers_that_are_no_objects_are_refused(void)
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

#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name                                                                                \
    }
static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    TEST(freed_object_comes_back_first),
    TEST(deferred_memory_is_not_written_or_reused_under_a_reader),
    TEST(deferred_objects_share_grace_periods),
    TEST(deferred_objects_come_back_after_one_grace_period),
    TEST(grace_period_is_asked_for),
    TEST(refill_leaves_room_for_latent_objects),
    TEST(flush_grows_with_latent_objects),
    TEST(latent_objects_are_preflushed_in_idle_time),
    TEST(object_cache_grows_with_demand),
    TEST(full_latent_cache_overflows_into_latent_slabs),
    TEST(shrink_never_takes_a_latent_slab),
    TEST(allocation_waits_for_latent_memory_before_it_fails),
    TEST(objects_freed_on_another_cpu_go_home),
    TEST(figures_are_exact),
    TEST(every_size_is_aligned_and_apart),
    TEST(type_safe_memory_stays_constructed),
    TEST(hard_interrupts_may_do_everything),
    TEST(pages_that_an_interrupt_frees_are_given_back),
#ifdef CONFIG_KASAN_GENERIC
    TEST(kasan_knows_deferred_objects),
#endif
    TEST(dead_cpu_leaves_nothing_behind),
    TEST(dying_cpu_keeps_no_request_to_itself),
    TEST(destroy_waits_for_nobody_else),
    TEST(invalid_caches_are_refused),
    TEST(pointers_that_are_no_objects_are_refused),
};

static int __init test_start(void)
{
    unsigned int i;

    objects = vmalloc(array_size(RING + MANY, sizeof(*objects)));
    if (!objects)
        return -ENOMEM;
    pr_info("KTAP version 1\n");
    pr_info("1..%zu\n", ARRAY_SIZE(tests));
    for (i = 0; i < ARRAY_SIZE(tests); i++) {
        failures = 0;
        tests[i].run();
        pr_info("%sok %u prudence.%s\n", failures ? "not " : "", i + 1, tests[i].name);
        failed += failures > 0;
        cond_resched();
    }
    vfree(objects);
    return 0;
}

static void __exit test_stop(void)
{
}

module_init(test_start);
module_exit(test_stop);
MODULE_DESCRIPTION("Tests of prudence.ko");
MODULE_LICENSE("Dual MIT/GPL");
