// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Measures kfree_rcu() and kfree(): a thread on each CPU allocates and frees `pairs` objects of
 * `size` bytes. Prints the time of a pair, the number and length of normal grace periods, and
 * memory while the threads run and two seconds later. If `partial` is not 0, each CPU then frees
 * that number of objects of the cache sheaf_bench, which stays until the module is unloaded.
 */
#define pr_fmt(format) KBUILD_MODNAME ": " format

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static unsigned int size = 64;
module_param(size, uint, 0444);
static unsigned int pairs = 1000000;
module_param(pairs, uint, 0444);
static unsigned int partial;
module_param(partial, uint, 0444);

#ifndef SLAB_NO_MERGE /* up to 6.5 */
#define SLAB_NO_MERGE ((slab_flags_t)0)
#endif

struct object {
    struct rcu_head rcu;
};

static bool deferred; /* whether the threads call kfree_rcu() */
static u64 total_ns;
static DEFINE_SPINLOCK(lock); /* total_ns */
static atomic_t running;
static struct kmem_cache *cache;

static int do_pairs(void *unused)
{
    u64 began = ktime_get_ns();
    unsigned int i;

    for (i = 0; i < pairs; i++) {
        struct object *object = kmalloc(size, GFP_KERNEL);

        if (object && deferred)
            kfree_rcu(object, rcu);
        else
            kfree(object);
        if (i % 64 == 0)
            cond_resched();
    }
    spin_lock(&lock);
    total_ns += ktime_get_ns() - began;
    spin_unlock(&lock);
    atomic_dec(&running);
    return 0;
}

static long used_kb(void)
{
    struct sysinfo info;

    si_meminfo(&info);
    return (long)((info.totalram - info.freeram) << (PAGE_SHIFT - 10));
}

/* Starts the threads, and returns the highest use of memory until the last has ended. */
static long run_threads(void)
{
    long peak = 0;
    unsigned int cpu;

    atomic_set(&running, 0);
    total_ns = 0;
    for_each_online_cpu(cpu) {
        struct task_struct *task = kthread_create_on_cpu(do_pairs, NULL, cpu, "sheaf_bench/%u");

        if (IS_ERR(task))
            continue;
        atomic_inc(&running);
        wake_up_process(task);
    }
    while (atomic_read(&running)) {
        peak = max(peak, used_kb());
        msleep(5);
    }
    return peak;
}

static void measure(bool by_rcu)
{
    unsigned long number = get_state_synchronize_rcu();
    long before = used_kb(), peak;
    u64 began = ktime_get_ns(), us;

    deferred = by_rcu;
    peak = run_threads();
    us = div_u64(ktime_get_ns() - began, 1000);
    number = (get_state_synchronize_rcu() - number) >> 2; /* the lowest bits are a state */
    msleep(2000);
    pr_info("run=pairs free=%s size=%u cpus=%u ns_per_pair=%llu grace_periods=%lu us_each=%llu "
            "peak_kb=%ld kept_kb=%ld\n",
            by_rcu ? "kfree_rcu" : "kfree", size, num_online_cpus(),
            div64_u64(total_ns, (u64)pairs * num_online_cpus()), number,
            number ? div64_u64(us, number) : 0, peak - before, used_kb() - before);
}

static long free_some(void *unused)
{
    unsigned int i;

    for (i = 0; i < partial; i++) {
        struct object *object = kmem_cache_alloc(cache, GFP_KERNEL);

        if (object)
            kfree_rcu(object, rcu);
    }
    return 0;
}

static int free_some_on_each_cpu(void)
{
    unsigned int cpu;

    cache = kmem_cache_create("sheaf_bench", max_t(unsigned int, size, sizeof(struct object)), 0,
                              SLAB_NO_MERGE, NULL);
    if (!cache)
        return -ENOMEM;
    for_each_online_cpu(cpu)
        work_on_cpu(cpu, free_some, NULL);
    pr_info("run=partial cpus=%u objects=%u\n", num_online_cpus(), num_online_cpus() * partial);
    return 0;
}

static int __init sheaf_bench_start(void)
{
    if (size < sizeof(struct object)) {
        pr_err("size=%u is less than a struct rcu_head (%zu)\n", size, sizeof(struct object));
        return -EINVAL;
    }
    if (pairs) {
        measure(false);
        measure(true);
    }
    return partial ? free_some_on_each_cpu() : 0;
}

static void __exit sheaf_bench_end(void)
{
    kmem_cache_destroy(cache);
}

module_init(sheaf_bench_start);
module_exit(sheaf_bench_end);
MODULE_DESCRIPTION("Measures kfree_rcu");
MODULE_LICENSE("Dual MIT/GPL");
