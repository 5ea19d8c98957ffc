// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_unload.ko: an interrupt defers an object, drops the references to prudence.ko and keeps
 * the CPU busy, so that the work which the deferral queued there runs late. kernel/test.sh unloads
 * prudence.ko at this time, which has to wait for that work. Not linked against prudence.ko, or it
 * could not be unloaded.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/prudence.h>
#include <linux/slab.h>
#include <linux/smp.h>

#define SIZE 8192 /* a large block, whose deferral takes the slow path */

static typeof(&prudence_kmalloc) allocate;
static typeof(&prudence_kfree_deferred) defer;
static void *object;
static bool let_go;

static void defer_and_stay(void *unused)
{
    defer(object);
    symbol_put(prudence_kmalloc);
    symbol_put(prudence_kfree_deferred);
    WRITE_ONCE(let_go, true);
    mdelay(1500);
}

static call_single_data_t call = CSD_INIT(defer_and_stay, NULL);

static int __init unload_start(void)
{
    unsigned int cpu;

    allocate = symbol_get(prudence_kmalloc);
    defer = symbol_get(prudence_kfree_deferred);
    object = allocate && defer ? allocate(SIZE, GFP_KERNEL) : NULL;
    if (WARN_ON(!object))
        return -ENOENT;
    migrate_disable();
    cpu = cpumask_last(cpu_online_mask);
    if (cpu == raw_smp_processor_id())
        cpu = cpumask_first(cpu_online_mask);
    smp_call_function_single_async(cpu, &call);
    migrate_enable();
    while (!READ_ONCE(let_go))
        cpu_relax();
    return 0;
}

static void __exit unload_stop(void)
{
}

module_init(unload_start);
module_exit(unload_stop);
MODULE_DESCRIPTION("Unloading of prudence.ko while an interrupt has deferred");
MODULE_LICENSE("Dual MIT/GPL");
