// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_torture.ko, modelled on rcutorture. For `seconds`, tasks, softirqs (timers) and hard
 * interrupts (hrtimers) replace pointers in a table and defer the old objects. At the same time
 * readers use objects for up to milliseconds, CPUs go offline and online, page allocations fail,
 * and caches are made, shrunk and destroyed. The verdict is printed as KTAP.
 *
 * Two things must never happen. An object must not change under a reader; its generation is written
 * when it is handed out. An object must not be handed out within a full grace period of its
 * deferral, when it recorded the kernel's cookie. Two histograms show the ages, in grace periods,
 * of the objects that readers see and that are handed out.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "compat_timer.h"
#include "gp_numbers.h"

static unsigned int seconds = 5;
module_param(seconds, uint, 0444);
static unsigned int size = 128;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of an object");
static bool hotplug = true;
module_param(hotplug, bool, 0444);
static bool inject = true;
module_param(inject, bool, 0444);
MODULE_PARM_DESC(inject, "make every other page allocation fail, every other second");
static int failed;
module_param(failed, int, 0444);

#define SLOTS   512
#define AGES    8
#define MAGIC   0x7072756465u
#define STEP    4 /* increment of the kernel's sequence per grace period */
#define THREADS 64

struct element {
    u64 magic;
    u64 generation;
    u64 inverse;         /* ~generation, last in the object */
    unsigned long stamp; /* cookie at the deferral, for ages */
    struct rcu_gp_seq full;
    u32 deferred;
    u32 was_deferred;
};

static struct prudence_cache *cache;
static struct element __rcu *slots[SLOTS];
static atomic64_t generations, updates, reads, no_memory, too_early, changed, hotplugs, side_caches;
static atomic64_t softirqs, hardirqs;
static atomic64_t ages_read[AGES], ages_reused[AGES];
static bool failing;

/* A random state per CPU, because on PREEMPT_RT hard interrupts must not take the lock of the
 * kernel's own generator. A race after an interrupt or migration only adds randomness. */
static DEFINE_PER_CPU(struct rnd_state, seeds);

static u32 any_number(void)
{
    return prandom_u32_state(raw_cpu_ptr(&seeds));
}

static void construct(void *object)
{
    memset(object, 0, sizeof(struct element));
}

static bool sometimes(void)
{
    return READ_ONCE(failing) && any_number() % 2 == 0;
}

static unsigned int age_of(unsigned long stamp)
{
    long age = (long)(get_state_synchronize_rcu() - stamp) / STEP;

    return age < 0 ? 0 : age < AGES ? age : AGES - 1;
}

/* Allocates an object and checks that any earlier deferral is a grace period old. */
static struct element *make(gfp_t gfp)
{
    struct element *new = prudence_cache_alloc(cache, gfp);

    if (!new) {
        atomic64_inc(&no_memory);
        return NULL;
    }
    if (new->was_deferred) {
        if (!poll_state_synchronize_rcu_full(&new->full))
            atomic64_inc(&too_early);
        atomic64_inc(&ages_reused[age_of(new->stamp)]);
    }
    new->generation = atomic64_inc_return(&generations);
    new->inverse = ~new->generation;
    new->deferred = new->was_deferred = 0;
    new->magic = MAGIC;
    return new;
}

static void defer(struct element *old)
{
    WRITE_ONCE(old->stamp, get_state_synchronize_rcu());
    get_state_synchronize_rcu_full(&old->full);
    old->was_deferred = 1;
    smp_store_release(&old->deferred, 1); /* publishes the stamp; pairs with acquire in look() */
    prudence_cache_free_deferred(cache, old);
}

static void update(gfp_t gfp)
{
    struct element *new = make(gfp), *old;
    u32 random = any_number();

    if (!new)
        return;
    if (random % 16 == 0) { /* never published */
        prudence_cache_free(cache, new);
        return;
    }
    old = unrcu_pointer(xchg(&slots[random / 16 % SLOTS], RCU_INITIALIZER(new)));
    if (old)
        defer(old);
    atomic64_inc(&updates);
}

static void look(const struct element *element, unsigned int us)
{
    u64 generation = READ_ONCE(element->generation);

    if (us)
        udelay(us);
    if (READ_ONCE(element->generation) != generation ||
        READ_ONCE(element->inverse) != ~generation || element->magic != MAGIC)
        atomic64_inc(&changed);
    if (smp_load_acquire(&element->deferred)) /* pairs with the release in defer() */
        atomic64_inc(&ages_read[age_of(READ_ONCE(element->stamp))]);
    atomic64_inc(&reads);
}

/* -------------------------------------------------------------------------------------- threads */

static int read_all(void *unused)
{
    while (!kthread_should_stop()) {
        const struct element *element;
        u32 random = any_number();

        rcu_read_lock();
        element = rcu_dereference(slots[random % SLOTS]);
        if (element)
            look(element, random >> 16 & 1023 ? (random >> 16) % 100 : 5000);
        rcu_read_unlock();
        cond_resched();
    }
    return 0;
}

static int update_all(void *unused)
{
    while (!kthread_should_stop()) {
        unsigned int i;

        for (i = 0; i < 100; i++)
            update(i % 4 ? GFP_KERNEL : GFP_NOWAIT | __GFP_NOWARN);
        if (any_number() % 4 == 0)
            schedule_timeout_interruptible(1);
        cond_resched();
    }
    return 0;
}

static int plug(void *unused)
{
    while (!kthread_should_stop()) {
        unsigned int cpu = num_online_cpus() > 1 ? cpumask_last(cpu_online_mask) : 0;

        msleep(50);
        if (!cpu || remove_cpu(cpu))
            continue;
        msleep(50);
        if (!add_cpu(cpu))
            atomic64_inc(&hotplugs);
    }
    return 0;
}

static int disturb(void *unused)
{
    while (!kthread_should_stop()) {
        struct prudence_cache *side = prudence_cache_create("side", 40, 0, 0, NULL);
        struct prudence_cache_stats stats;
        unsigned int i;

        for (i = 0; side && i < 500; i++) {
            void *object = prudence_cache_alloc(side, GFP_KERNEL);

            if (object && i % 2)
                prudence_cache_free(side, object);
            else if (object)
                prudence_cache_free_deferred(side, object);
        }
        if (side && !WARN_ON(prudence_cache_destroy(side)))
            atomic64_inc(&side_caches);
        prudence_cache_shrink(cache);
        prudence_cache_stats(cache, &stats);
        WRITE_ONCE(failing, inject && ktime_get_seconds() % 2);
        msleep(20);
    }
    return 0;
}

/* ----------------------------------------------------------------------------------- interrupts */

static struct timer_list timers[4];
static struct hrtimer hrtimers[4];
static bool ending;

static void update_in_softirq(struct timer_list *timer)
{
    unsigned int i;

    for (i = 0; i < 50; i++)
        update(GFP_ATOMIC | __GFP_NOWARN);
    atomic64_inc(&softirqs);
    if (!READ_ONCE(ending))
        mod_timer(timer, jiffies + 1);
}

static enum hrtimer_restart update_in_hardirq(struct hrtimer *timer)
{
    unsigned int i;

    for (i = 0; i < 10; i++)
        update(GFP_ATOMIC | __GFP_NOWARN);
    atomic64_inc(&hardirqs);
    if (READ_ONCE(ending))
        return HRTIMER_NORESTART;
    hrtimer_forward_now(timer, ns_to_ktime(500000));
    return HRTIMER_RESTART;
}

static void interrupts_start(void)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(timers); i++) {
        timer_setup(&timers[i], update_in_softirq, 0);
        timers[i].expires = jiffies + 1;
        add_timer_on(&timers[i], i % num_online_cpus());
        compat_hrtimer_setup(&hrtimers[i], update_in_hardirq);
        hrtimer_start(&hrtimers[i], ns_to_ktime(100000 + 37000ull * i), HRTIMER_MODE_REL_HARD);
    }
}

static void interrupts_stop(void)
{
    unsigned int i;

    WRITE_ONCE(ending, true);
    for (i = 0; i < ARRAY_SIZE(timers); i++) {
        compat_timer_delete_sync(&timers[i]);
        hrtimer_cancel(&hrtimers[i]);
    }
}

/* -------------------------------------------------------------------------------------- verdict */

static unsigned int number;

static void verdict(bool ok, const char *what)
{
    pr_info("%sok %u torture.%s\n", ok ? "" : "not ", ++number, what);
    failed += !ok;
}

static u64 histogram(const char *what, atomic64_t *ages, unsigned int from)
{
    char text[160];
    int i, length = 0;
    u64 beyond = 0;

    for (i = 0; i < AGES; i++) {
        u64 count = atomic64_read(&ages[i]);

        length += scnprintf(text + length, sizeof(text) - length, " %llu", count);
        beyond += i >= from ? count : 0;
    }
    pr_info("# %s, by age in grace periods (0, 1, ...):%s\n", what, text);
    return beyond;
}

static void report(const struct prudence_cache_stats *stats, int destroyed)
{
    struct prudence_stats totals;

    prudence_stats(&totals);
    pr_info(
        "# updates %lld reads %lld softirqs %lld hardirqs %lld hotplugs %lld side caches %lld\n",
        atomic64_read(&updates), atomic64_read(&reads), atomic64_read(&softirqs),
        atomic64_read(&hardirqs), atomic64_read(&hotplugs), atomic64_read(&side_caches));
    pr_info(
        "# no memory %lld hits %llu of %llu bypasses %llu overflowed %llu preflushed %llu slabs "
        "%llu\n",
        atomic64_read(&no_memory), stats->hits, stats->allocations, stats->busy_bypasses,
        stats->overflowed_objects, stats->preflushed_objects, stats->slabs_peak);
    pr_info("# grace periods asked for %llu, expedited %llu, interrupts %llu\n", totals.requests,
            totals.expedited, totals.interrupts);
    verdict(!histogram("deferred objects that readers saw", ages_read, 2),
            "readers_see_nothing_past_the_second_grace_period");
    histogram("objects that were handed out again", ages_reused, AGES);
    verdict(!atomic64_read(&changed), "nothing_changes_under_a_reader");
    verdict(!atomic64_read(&too_early), "nothing_is_handed_out_before_its_grace_period");
    verdict(atomic64_read(&updates) > 1000 && atomic64_read(&reads) > 1000, "something_happened");
    verdict(atomic64_read(&softirqs) && atomic64_read(&hardirqs), "interrupts_took_part");
    verdict(!hotplug || num_possible_cpus() == 1 || atomic64_read(&hotplugs), "cpus_came_and_went");
    verdict(stats->objects_live == 0, "every_object_is_accounted_for");
    verdict(destroyed == 0, "destroy_finds_nothing_live");
}

static struct task_struct *threads[THREADS];
static unsigned int thread_count;

static void thread_start(int (*run)(void *unused))
{
    struct task_struct *task = kthread_run(run, NULL, "prudence_torture");

    if (!IS_ERR(task) && thread_count < THREADS)
        threads[thread_count++] = task;
}

static int __init torture_start(void)
{
    struct prudence_cache_stats stats;
    unsigned int i;

    prandom_seed_full_state(&seeds);
    size = max_t(unsigned int, size, sizeof(struct element));
    cache = prudence_cache_create("torture", size, 0, 0, construct);
    if (!cache)
        return -ENOMEM;
    prudence_inject_failures(sometimes);
    for (i = 0; i < min(num_online_cpus(), 16u); i++) {
        thread_start(read_all);
        thread_start(update_all);
        thread_start(update_all);
    }
    thread_start(disturb);
    if (hotplug)
        thread_start(plug);
    interrupts_start();
    msleep(seconds * 1000);
    interrupts_stop();
    while (thread_count)
        kthread_stop(threads[--thread_count]);
    prudence_inject_failures(NULL);
    for (i = 0; i < SLOTS; i++) {
        struct element *old = unrcu_pointer(xchg(&slots[i], NULL));

        if (old)
            defer(old);
    }
    prudence_cache_stats(cache, &stats);
    report(&stats, prudence_cache_destroy(cache));
    return 0;
}

static void __exit torture_stop(void)
{
}

module_init(torture_start);
module_exit(torture_stop);
MODULE_DESCRIPTION("Torture of prudence.ko");
MODULE_LICENSE("Dual MIT/GPL");
