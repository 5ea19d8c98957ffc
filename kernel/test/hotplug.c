// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests of CPUs that go offline and come online. */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "compat_timer.h"
#include "seams.h"
#include "test.h"

void dead_cpu_leaves_nothing_behind(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int cpu = cpumask_last(cpu_online_mask);

    work_on_cpu(cpu, use_in_task, cache);
    EXPECT(STAT(cache, objects_cached) > 0);
    EXPECT_EQ(remove_cpu(cpu), 0);
    EXPECT_EQ(STAT(cache, objects_cached), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0); /* while the CPU is offline */
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
    prudence_kfree_deferred(objects[i]); /* a large block, which requests a grace period at once */
    hrtimer_forward_now(timer, ns_to_ktime(250000));
    return HRTIMER_RESTART;
}

static void start_deferring(void *unused)
{
    compat_hrtimer_setup(&last_timer, defer_next);
    hrtimer_start(&last_timer, ns_to_ktime(250000), HRTIMER_MODE_REL_PINNED_HARD);
}

/* Delays stop_machine, and so keeps the dying CPU alive for longer. */
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

/* A request may stay with the dying CPU's thread where threads run irq_work. About three rounds in
 * five detect that, so PREEMPT_RT gets four. */
void dying_cpu_keeps_no_request_to_itself(void)
{
    unsigned int rounds = IS_ENABLED(CONFIG_PREEMPT_RT) ? 4 : 1;
    unsigned int i, wait, cpu = cpumask_last(cpu_online_mask);
    u64 before;

    for (i = 0; i < rounds; i++) {
        cpu_defers_until_it_is_dead(cpu);
        synchronize_rcu(); /* changes the next cookie */
        before = totals().requests;
        prudence_kfree_deferred(prudence_kmalloc(2 * PAGE_SIZE, GFP_KERNEL));
        for (wait = 0; wait < 250 && totals().requests == before; wait++)
            msleep(20);
        EXPECT(totals().requests > before);
        EXPECT_EQ(add_cpu(cpu), 0);
    }
}

/*
 * --- a CPU comes while another, which found it dead, is about to take its caches ---
 *
 * The kernel calls its notifiers one after the other before a CPU comes. The first is this test's,
 * at a point where nothing waits any more (the kernel itself waits for a grace period at the very
 * beginning). Then comes prudence.ko's, then another of this test.
 */
#define ROUNDS    5
#define LINGER_MS 30
#define AT_ONCE   100

#define BEFORE_PRUDENCE CPUHP_MIPS_SOC_PREPARE /* no user on this architecture */

static struct {
    unsigned int cpu;
    struct task_struct *taker;
    bool may_look; /* the taker may begin */
    bool lingers;  /* the taker has found the CPU dead and not claimed yet */
    bool comes;
    unsigned int lingered, came_meanwhile, used_at_once;
} coming;

/* Holds up a taker that has found the CPU dead, so that the CPU could come if that did not wait. */
static void linger(unsigned int cpu)
{
    unsigned int ms;

    if (current != READ_ONCE(coming.taker) || cpu != coming.cpu)
        return;
    coming.lingered++;
    WRITE_ONCE(coming.lingers, true);
    for (ms = 0; ms < LINGER_MS && !READ_ONCE(coming.comes); ms++)
        mdelay(1);
    WRITE_ONCE(coming.lingers, false);
}

/* Runs on another CPU. */
static int it_is_about_to_come(unsigned int cpu)
{
    unsigned int i, before = coming.lingered;

    WRITE_ONCE(coming.may_look, true);
    for (i = 0; i < 100000 && READ_ONCE(coming.lingered) == before; i++)
        usleep_range(100, 200);
    return 0;
}

/* Runs on another CPU, after prudence.ko's notifier, which was registered first. */
static int it_comes(unsigned int cpu)
{
    coming.came_meanwhile += READ_ONCE(coming.lingers);
    WRITE_ONCE(coming.comes, true);
    return 0;
}

/* Runs on the coming CPU, as soon as that runs threads. */
static int it_runs(unsigned int cpu)
{
    u32 *mine[AT_ONCE];
    unsigned int i, turn;

    for (turn = 0; turn < 50; turn++) {
        for (i = 0; i < AT_ONCE; i++)
            mine[i] = marked_alloc(GFP_KERNEL);
        for (i = 0; i < AT_ONCE; i++)
            marked_free(mine[i], i % 2);
    }
    coming.used_at_once++;
    return 0;
}

static void make_and_destroy(void)
{
    struct prudence_cache *side = cache_of(SIZE);
    void *object = prudence_cache_alloc(side, GFP_KERNEL);

    EXPECT(object != NULL);
    prudence_cache_free(side, object);
    EXPECT_EQ(prudence_cache_destroy(side), 0);
}

static int take_its_caches(void *unused)
{
    while (!kthread_should_stop() && !READ_ONCE(coming.may_look))
        schedule_timeout_interruptible(1);
    while (!kthread_should_stop()) {
        prudence_cache_shrink(marked);
        make_and_destroy();
        cond_resched();
    }
    return 0;
}

static void cpu_goes_and_comes(void)
{
    coming.may_look = coming.lingers = coming.comes = false;
    work_on_cpu(coming.cpu, use_in_task, marked); /* gives the CPU arrays */
    EXPECT_EQ(remove_cpu(coming.cpu), 0);
    coming.taker = kthread_create(take_its_caches, NULL, "prudence_taker");
    kthread_bind(coming.taker, cpumask_first(cpu_online_mask));
    wake_up_process(coming.taker);
    EXPECT_EQ(add_cpu(coming.cpu), 0);
    kthread_stop(coming.taker);
}

/* A coming CPU uses its caches on fast paths only after all threads that found it dead have claimed
 * them. */
void coming_cpu_waits_for_threads_that_found_it_dead(void)
{
    int is_about_to =
        cpuhp_setup_state_nocalls(BEFORE_PRUDENCE, "prudence/test:soon", it_is_about_to_come, NULL);
    int comes =
        cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "prudence/test:comes", it_comes, NULL);
    int runs = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "prudence/test:runs", it_runs, NULL);
    static struct cpumask others;
    unsigned int i;

    EXPECT(is_about_to == 0 && comes > 0 && runs > 0);
    coming.cpu = cpumask_last(cpu_online_mask);
    coming.lingered = coming.came_meanwhile = coming.used_at_once = 0;
    cpumask_copy(&others, cpu_online_mask);
    cpumask_clear_cpu(cpumask_first(&others), &others); /* the taker occupies this CPU */
    cpumask_clear_cpu(coming.cpu, &others);
    set_cpus_allowed_ptr(current, &others);
    marked_begin();
    prudence_watch_claims(linger);
    for (i = 0; i < ROUNDS; i++)
        cpu_goes_and_comes();
    prudence_watch_claims(NULL);
    synchronize_rcu(); /* until no thread is in linger() */
    EXPECT(coming.lingered >= ROUNDS);
    EXPECT_EQ(coming.came_meanwhile, 0);
    EXPECT_EQ(coming.used_at_once, ROUNDS);
    marked_end();
    set_cpus_allowed_ptr(current, cpu_possible_mask);
    cpuhp_remove_state_nocalls(runs);
    cpuhp_remove_state_nocalls(comes);
    cpuhp_remove_state_nocalls(BEFORE_PRUDENCE);
}
