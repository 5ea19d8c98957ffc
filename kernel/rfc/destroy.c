// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Destroys caches of SLUB while their objects wait for a grace period and a barn counts them
 * (kernel/rfc/0001). Each time all CPUs allocate and free by kfree_rcu(), so that barns overflow,
 * and then the cache is destroyed at once. Loading the module fails with -ENODEV after it has
 * printed the number of caches. The kernel complains about a cache that cannot be destroyed.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static unsigned int caches = 20;
module_param(caches, uint, 0444);
static unsigned int pairs = 20000;
module_param(pairs, uint, 0444);

struct object {
    struct rcu_head rcu;
    char bytes[176];
};

static struct kmem_cache *cache;

static void do_pairs(struct work_struct *unused)
{
    unsigned int i;

    for (i = 0; i < pairs; i++) {
        struct object *object = kmem_cache_alloc(cache, GFP_KERNEL);

        if (object)
            kfree_rcu(object, rcu);
        if (i % 64 == 0)
            cond_resched();
    }
}

static void on_each_cpu_do_pairs(void)
{
    static struct work_struct works[NR_CPUS];
    unsigned int cpu;

    for_each_online_cpu(cpu) {
        INIT_WORK(&works[cpu], do_pairs);
        schedule_work_on(cpu, &works[cpu]);
    }
    for_each_online_cpu(cpu)
        flush_work(&works[cpu]);
}

static int __init destroy_start(void)
{
    unsigned int i;

    for (i = 0; i < caches; i++) {
        cache = kmem_cache_create("rfc_destroy", sizeof(struct object), 0, SLAB_NO_MERGE, NULL);
        if (!cache)
            return -ENOMEM;
        on_each_cpu_do_pairs();
        kmem_cache_destroy(cache);
    }
    pr_info("DESTROYED %u\n", i);
    return -ENODEV;
}

module_init(destroy_start);
MODULE_DESCRIPTION("Caches that are destroyed while sheaves wait");
MODULE_LICENSE("Dual MIT/GPL");
