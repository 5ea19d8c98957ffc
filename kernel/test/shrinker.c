// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests of latent memory that no thread returns to (kernel/shrinker.c), and of too much latent
 * memory (kernel/limits.c). */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/workqueue.h>

#include "seams.h"
#include "test.h"

#define BLOCK_BYTES (16 * PAGE_SIZE)
#define PATIENCE    100 /* times 50 ms, because debug kernels are slow */

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

/* The default budget is 1/64 of memory. A reader keeps grace periods from ending. */
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

/* Allocates and frees more objects than a CPU and a node keep. */
static long fill_here(void *cache)
{
    unsigned int i;

    for (i = 0; i < MANY; i++)
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
    for (i = 0; i < MANY; i++)
        prudence_cache_free(cache, objects[i]);
    return 0;
}

/* Waits until decay has drained the cache, and its CPUs have no arrays. A deferral starts the
 * rounds, which end when nothing has come back for a while. */
static void decay_empties(struct prudence_cache *cache)
{
    unsigned int i;

    for (i = 0; i < PATIENCE && (STAT(cache, slabs_now) || STAT(cache, object_cache_size)); i++) {
        if (i % 20 == 0)
            prudence_kfree_deferred(prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL));
        msleep(50);
    }
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(STAT(cache, slabs_now), 0);
    EXPECT_EQ(STAT(cache, object_cache_size), 0);
}

/* Objects on quiet CPUs are drained by a work item on each CPU, without an interrupt for each
 * batch. */
void decay_interrupts_no_other_cpu(void)
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
    decay_empties(cache);
    EXPECT_EQ(totals().interrupts, interrupts);
    EXPECT(STAT(cache, remote_drains) >= filled);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Frees BURST objects between any two interrupts, so whoever comes finds some. */
#define BURST        20
#define BURSTS       20000
#define A_FEW_VISITS 16

static struct prudence_cache *busy_cache;
static atomic_t bursts;

static int stay_busy(void *unused)
{
    void *burst[BURST];
    unsigned int i;

    while (!kthread_should_stop()) {
        if (atomic_read(&bursts) < BURSTS) {
            local_irq_disable();
            for (i = 0; i < BURST; i++)
                burst[i] = prudence_cache_alloc(busy_cache, GFP_ATOMIC);
            for (i = 0; i < BURST; i++)
                prudence_cache_free(busy_cache, burst[i]);
            local_irq_enable();
            atomic_inc(&bursts);
        }
        cond_resched();
    }
    return 0;
}

static long shrink_here(void *cache)
{
    prudence_cache_shrink(cache);
    return 0;
}

/* Each visit to a CPU that is in use finds more. It was visited until it paused, which took 22
 * seconds on a loaded machine. */
void a_busy_cpu_is_not_drained_for_ever(void)
{
    struct task_struct *busy = kthread_create(stay_busy, NULL, "prudence_busy");
    u64 interrupts;

    busy_cache = cache_of(SIZE);
    atomic_set(&bursts, 0);
    kthread_bind(busy, cpumask_last(cpu_online_mask));
    wake_up_process(busy);
    while (!atomic_read(&bursts))
        msleep(1);
    interrupts = totals().interrupts;
    work_on_cpu(cpumask_first(cpu_online_mask), shrink_here, busy_cache);
    EXPECT(totals().interrupts - interrupts <= A_FEW_VISITS);
    kthread_stop(busy);
    EXPECT_EQ(prudence_cache_destroy(busy_cache), 0);
}

static long fill_and_defer_here(void *cache)
{
    prudence_kfree_deferred(prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL));
    return fill_here(cache);
}

/* A CPU with objects to give goes offline at various times within a round, before it has given
 * them. If no round was due, it also has the timer of the next one, which then runs on any CPU. */
void decay_goes_on_when_cpus_go(void)
{
    unsigned int cpu = cpumask_last(cpu_online_mask), round;
    struct prudence_cache *cache = cache_of(SIZE);

    if (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))
        cpu = cpumask_first(cpu_online_mask) + 1;
    for (round = 0; round < 6; round++) {
        work_on_cpu(cpu, fill_and_defer_here, cache);
        msleep(round * 100);
        EXPECT_EQ(remove_cpu(cpu), 0);
        EXPECT_EQ(STAT(cache, objects_cached), 0);
        EXPECT_EQ(add_cpu(cpu), 0);
    }
    work_on_cpu(cpu, fill_here, cache);
    decay_empties(cache);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* A shrink frees the arrays that it finds empty, so the arrays survive the shrink that empties
 * them. */
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
    EXPECT_EQ(fill(cache, MANY), MANY); /* needs arrays again */
    EXPECT(STAT(cache, object_cache_size) > 0);
    defer(cache, MANY);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Objects on an isolated CPU (isolcpus, nohz_full) do not cause interrupts there. */
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
#define SLAB_PAGES  8 /* pages of the largest slab, the granularity */
#define LARGE_BYTES 1024

/* Scans at least three times, and until the cache (unless NULL) has no slabs. */
static void scan_everything(struct prudence_cache *cache)
{
    unsigned int i;

    for (i = 0; i < 200 && (i < 3 || (cache && STAT(cache, slabs_now))); i++) {
        synchronize_rcu(); /* makes latent objects safe */
        scan(ALL_PAGES);
    }
}

/* Returns the most that three counts find; one finds nothing while another thread has the list of
 * caches. */
static unsigned long count(void)
{
    struct shrinker *shrinker = prudence_shrinker();
    struct shrink_control control = {.gfp_mask = GFP_KERNEL};
    unsigned long most = 0;
    unsigned int i;

    for (i = 0; i < 3; i++) {
        most = max(most, shrinker->count_objects(shrinker, &control));
        msleep(20);
    }
    return most;
}

#define A_FEW_PAGES 16

/* Reclaim does not get live blocks, whatever their size, and gets deferred ones. */
void live_blocks_do_not_count_as_free(void)
{
    unsigned long before, pages = 0;
    unsigned int i;

    scan_everything(NULL);
    before = count();
    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_kmalloc(i % 2 ? BLOCK_BYTES : 5 * PAGE_SIZE, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
        pages += prudence_ksize(objects[i]) >> PAGE_SHIFT;
    }
    EXPECT_EQ(pages, MANY / 2 * (16 + 8));
    EXPECT(count() <= before + A_FEW_PAGES);
    reader_enters();
    for (i = 0; i < MANY; i++)
        prudence_kfree_deferred(objects[i]);
    EXPECT(count() >= pages);
    reader_leaves();
    scan_everything(NULL);
    EXPECT(count() <= before + A_FEW_PAGES);
}

/* While free slabs last, the shrinker gives the pages asked for, in whole slabs, without
 * interrupts. Others may cause some, but not each time. When asked for everything, it gives
 * everything. */
void shrinker_gives_what_is_asked_for(void)
{
    struct prudence_cache *cache = cache_of(LARGE_BYTES);
    const unsigned long pages[] = {1, SLAB_PAGES, SLAB_PAGES + 1};
    unsigned long freed;
    unsigned int i, cpu, disturbed = 0, emptied = 0;
    u64 cached, interrupts;

    scan_everything(NULL); /* memory of other tests */
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
    defer(cache, fill(cache, MANY)); /* latent objects are given too */
    scan_everything(cache);
    EXPECT_EQ(STAT(cache, slabs_now), 0);
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
