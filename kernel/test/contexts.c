// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests that interrupts may use all functions. */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "compat_timer.h"
#include "test.h"

static atomic_t in_interrupt_failed;

void use_in_interrupt(void *cache)
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

long use_in_task(void *cache)
{
    use_in_interrupt(cache);
    return 0;
}

/* On PREEMPT_RT interrupts cannot get pages, only the objects that tasks freed. */
void hard_interrupts_may_do_everything(void)
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

#ifdef CONFIG_DEBUG_ATOMIC_SLEEP
/* An object is free, so the allocation need not sleep, but the flags allow it. tools/kernel/test
 * searches for the kernel's report. */
void allocation_that_may_sleep_is_reported_where_sleeping_is_not_allowed(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    void *object;

    EXPECT_EQ(fill(cache, 1), 1);
    prudence_cache_free(cache, objects[0]);
    pr_info("provoked: begin\n");
    preempt_disable();
    object = prudence_cache_alloc(cache, GFP_KERNEL);
    preempt_enable();
    pr_info("provoked: end\n");
    EXPECT(object == objects[0]);
    prudence_cache_free(cache, object);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
#endif

#define BLOCKS      20
#define BLOCK_BYTES (16 * PAGE_SIZE)

static void free_blocks(void *unused)
{
    unsigned int i;

    for (i = 0; i < BLOCKS; i++)
        prudence_kfree(objects[i]);
}

/* On PREEMPT_RT, a little later, because an interrupt may not take the page allocator's locks. */
void pages_that_an_interrupt_frees_are_given_back(void)
{
    unsigned int i;
    u64 used;

    for (i = 0; i < BLOCKS; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    used = totals().page_bytes;
    smp_call_function_single(cpumask_last(cpu_online_mask), free_blocks, NULL, 1);
    for (i = 0; i < 250 && totals().page_bytes > used - BLOCKS * BLOCK_BYTES; i++)
        msleep(20);
    EXPECT(totals().page_bytes <= used - BLOCKS * BLOCK_BYTES);
}

/* --- an interrupt every 20 to 30 us, in code that uses the same cache --- */
#define INTERRUPTS 20000
#define AT_ONCE    200

static struct hrtimer often;
static unsigned int interrupts;

static enum hrtimer_restart come_in_between(struct hrtimer *timer)
{
    u32 *mine[4];
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(mine); i++)
        mine[i] = marked_alloc(GFP_ATOMIC | __GFP_NOWARN);
    for (i = 0; i < ARRAY_SIZE(mine); i++)
        marked_free(mine[i], i % 2);
    if (++interrupts >= INTERRUPTS)
        return HRTIMER_NORESTART;
    hrtimer_forward_now(timer, ns_to_ktime(20000 + 97 * (interrupts % 100)));
    return HRTIMER_RESTART;
}

static void use_some(void)
{
    unsigned int i;

    for (i = 0; i < AT_ONCE; i++)
        objects[i] = marked_alloc(GFP_KERNEL);
    for (i = 0; i < AT_ONCE; i++)
        marked_free(objects[i], i % 2);
}

/* Runs until there were enough interrupts, at most for a few seconds. The CPU's caches are there
 * before the first one, because no interrupt can make them on PREEMPT_RT. */
static long use_during_interrupts(void *unused)
{
    unsigned long end = jiffies + 5 * HZ;

    use_some();
    compat_hrtimer_setup(&often, come_in_between);
    hrtimer_start(&often, ns_to_ktime(20000), HRTIMER_MODE_REL_PINNED_HARD);
    while (READ_ONCE(interrupts) < INTERRUPTS && time_before(jiffies, end)) {
        use_some();
        cond_resched();
    }
    hrtimer_cancel(&often);
    return 0;
}

/* An interrupt also never finds this CPU's caches owned by the code that it interrupted. */
void interrupts_find_nothing_half_done(void)
{
    interrupts = 0;
    marked_begin();
    work_on_cpu(cpumask_last(cpu_online_mask), use_during_interrupts, NULL);
    EXPECT(interrupts > 100);
    EXPECT_EQ(STAT(marked, busy_bypasses), 0);
    marked_end();
}
