// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* CPUs that go and come. */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "compat_timer.h"
#include "test.h"

void dead_cpu_leaves_nothing_behind(void)
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
void dying_cpu_keeps_no_request_to_itself(void)
{
    unsigned int rounds = IS_ENABLED(CONFIG_PREEMPT_RT) ? 4 : 1;
    unsigned int i, wait, cpu = cpumask_last(cpu_online_mask);
    u64 before;

    for (i = 0; i < rounds; i++) {
        cpu_defers_until_it_is_dead(cpu);
        synchronize_rcu(); /* the next cookie is another */
        before = totals().requests;
        prudence_kfree_deferred(prudence_kmalloc(2 * PAGE_SIZE, GFP_KERNEL));
        for (wait = 0; wait < 250 && totals().requests == before; wait++)
            msleep(20);
        EXPECT(totals().requests > before);
        EXPECT_EQ(add_cpu(cpu), 0);
    }
}
