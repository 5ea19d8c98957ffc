// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Latent memory that nobody comes back to (kernel/shrinker.c), and too much of it (kernel/limits.c). */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/workqueue.h>

#include "seams.h"
#include "test.h"

#define BLOCK_BYTES (16 * PAGE_SIZE)
#define PATIENCE    100 /* times 50 ms; a debug kernel is slow */

void latent_objects_of_a_quiet_cache_are_merged(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 slabs;
    unsigned int i;

    EXPECT_EQ(fill(cache, MANY), MANY);
    slabs = STAT(cache, slabs_now);
    defer(cache, MANY);
    for (i = 0; i < PATIENCE && (STAT(cache, objects_latent) || STAT(cache, slabs_now) >= slabs);
         i++) {
        wake_all_cpus();
        msleep(50);
    }
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    EXPECT(STAT(cache, slabs_now) < slabs);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void deferred_blocks_are_given_back_unasked(void)
{
    u64 used = totals().page_bytes;
    unsigned int i;

    for (i = 0; i < 20; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    EXPECT(totals().page_bytes >= used + 20 * BLOCK_BYTES);
    for (i = 0; i < 20; i++)
        prudence_kfree_deferred(objects[i]);
    for (i = 0; i < PATIENCE && totals().page_bytes > used; i++) {
        wake_all_cpus();
        msleep(50);
    }
    EXPECT(totals().page_bytes <= used);
}

/* The budget is 1/64 of memory, unless it is set. A reader keeps grace periods from ending. */
void latent_memory_beyond_its_budget_is_expedited(void)
{
    u64 budget = (u64)totalram_pages() << PAGE_SHIFT >> 6, expedited;
    unsigned int i, wait, count = min_t(u64, budget / BLOCK_BYTES + 64, RING);

    for (i = 0; i < count; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    reader_enters();
    expedited = totals().expedited;
    for (i = 0; i < count / 2; i++)
        prudence_kfree_deferred(objects[i]);
    msleep(100);
    EXPECT_EQ(totals().expedited, expedited);
    for (; i < count; i++)
        prudence_kfree_deferred(objects[i]);
    for (wait = 0; wait < 200 && totals().expedited == expedited; wait++)
        msleep(50);
    EXPECT(totals().expedited > expedited);
    reader_leaves();
}

/* More than its CPU and its node keep. */
static long fill_here(void *cache)
{
    unsigned int i;

    for (i = 0; i < MANY; i++)
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
    for (i = 0; i < MANY; i++)
        prudence_cache_free(cache, objects[i]);
    return 0;
}

/* Rounds begin with a deferral, and end when nothing has come back for a while. */
static void tidying_empties(struct prudence_cache *cache)
{
    unsigned int i;

    for (i = 0; i < PATIENCE && STAT(cache, slabs_now); i++) {
        if (i % 20 == 0)
            prudence_kfree_deferred(prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL));
        msleep(50);
    }
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(STAT(cache, slabs_now), 0);
}

/* What lies on CPUs that went quiet goes by work on each of them, without an interrupt for each batch of objects. */
void tidying_interrupts_no_other_cpu(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int cpu, filled = 0;
    u64 interrupts;

    for_each_online_cpu(cpu) {
        if (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
            continue;
        work_on_cpu(cpu, fill_here, cache);
        filled++;
    }
    EXPECT(STAT(cache, objects_cached) > 0);
    interrupts = totals().interrupts;
    tidying_empties(cache);
    EXPECT_EQ(totals().interrupts, interrupts);
    EXPECT(STAT(cache, remote_drains) >= filled);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* A CPU that has something to give goes before it has, sooner or later in a round; and comes back. */
void tidying_goes_on_when_cpus_go(void)
{
    unsigned int cpu = cpumask_last(cpu_online_mask), round;
    struct prudence_cache *cache = cache_of(SIZE);

    if (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
        cpu = cpumask_first(cpu_online_mask) + 1;
    for (round = 0; round < 6; round++) {
        work_on_cpu(cpu, fill_here, cache);
        prudence_kfree_deferred(prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL));
        msleep(round * 100);
        EXPECT_EQ(remove_cpu(cpu), 0);
        EXPECT_EQ(STAT(cache, objects_cached), 0);
        EXPECT_EQ(add_cpu(cpu), 0);
    }
    work_on_cpu(cpu, fill_here, cache);
    tidying_empties(cache);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Arrays go when there was nothing in them any more, at the second time. */
void shrinking_gives_arrays_back(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int cpu;

    for_each_online_cpu(cpu)
        work_on_cpu(cpu, use_in_task, cache);
    EXPECT(STAT(cache, object_cache_size) > 0);
    synchronize_rcu();
    prudence_cache_shrink(cache);
    synchronize_rcu();
    prudence_cache_shrink(cache);
    prudence_cache_shrink(cache);
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(STAT(cache, object_cache_size), 0);
    EXPECT_EQ(fill(cache, MANY), MANY); /* it comes back to them */
    EXPECT(STAT(cache, object_cache_size) > 0);
    defer(cache, MANY);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* What lies on a CPU that was set apart (isolcpus, nohz_full) does not interrupt it. */
void isolated_cpus_are_left_alone(void)
{
    struct prudence_cache *cache;
    unsigned int cpu = cpumask_last(cpu_online_mask), i;
    u64 interrupts;

    if (housekeeping_cpu(cpu, HK_TYPE_DOMAIN)) {
        pr_info("# SKIP: CPU %u was not set apart (isolcpus=%u)\n", cpu, cpu);
        return;
    }
    cache = cache_of(SIZE);
    work_on_cpu(cpu, use_in_task, cache);
    interrupts = totals().interrupts;
    for (i = 0; i < 40; i++) {
        wake_all_cpus();
        msleep(50);
    }
    EXPECT_EQ(totals().interrupts, interrupts);
    EXPECT(STAT(cache, objects_cached) + STAT(cache, objects_latent) > 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

static unsigned long scan(unsigned long pages)
{
    struct shrinker *shrinker = prudence_shrinker();
    struct shrink_control control = {.gfp_mask = GFP_KERNEL, .nr_to_scan = pages};
    unsigned long freed = shrinker->scan_objects(shrinker, &control);

    return freed == SHRINK_STOP ? 0 : freed;
}

#define ALL_PAGES   (1ul << 30)
#define SLAB_PAGES  8 /* of the largest slab: the grain */
#define LARGE_BYTES 1024

/* Until nothing of the cache is left, which may be NULL. */
static void scan_everything(struct prudence_cache *cache)
{
    unsigned int i;

    for (i = 0; i < 200 && (i < 3 || (cache && STAT(cache, slabs_now))); i++) {
        synchronize_rcu(); /* what was latent is safe */
        scan(ALL_PAGES);
    }
}

/* Asked for a little, and while there are free slabs: it gives that, in whole slabs, and interrupts nobody (somebody else
 * may do so, but not each time). Asked for all it gives all. */
void shrinker_gives_what_is_asked_for(void)
{
    struct prudence_cache *cache = cache_of(LARGE_BYTES);
    const unsigned long pages[] = {1, SLAB_PAGES, SLAB_PAGES + 1};
    unsigned long freed;
    unsigned int i, cpu, disturbed = 0, emptied = 0;
    u64 cached, interrupts;

    scan_everything(NULL); /* what others have left */
    for_each_online_cpu(cpu)
        if (housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
            work_on_cpu(cpu, fill_here, cache);
    EXPECT_EQ(STAT(cache, slab_size), SLAB_PAGES * PAGE_SIZE);
    for (i = 0; i < ARRAY_SIZE(pages); i++) {
        interrupts = totals().interrupts;
        cached = STAT(cache, objects_cached);
        EXPECT(i || cached > 0);
        freed = scan(pages[i]);
        disturbed += totals().interrupts != interrupts;
        emptied += STAT(cache, objects_cached) != cached;
        EXPECT(freed >= pages[i]);
        EXPECT(freed < pages[i] + SLAB_PAGES);
    }
    EXPECT(disturbed < ARRAY_SIZE(pages));
    EXPECT(emptied < ARRAY_SIZE(pages));
    defer(cache, fill(cache, MANY)); /* what is latent goes as well */
    scan_everything(cache);
    EXPECT_EQ(STAT(cache, slabs_now), 0);
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
