// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Waits for all work that a run has deferred, whichever allocator deferred it, until the objects
 * are free. So the work's time can be counted, and the next subject begins with the same memory.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/kernel_stat.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/tick.h>
#include <linux/timekeeping.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "bench.h"

#define BOOTED_S 3

/* Waits until the kernel's timers are precise, about a second after boot, because only then does
 * the kernel know how long CPUs idle. */
static bool idle_time_is_known(void)
{
    while (ktime_get_seconds() < BOOTED_S)
        msleep(100);
    if (get_cpu_idle_time_us(0, NULL) != U64_MAX)
        return true;
    pr_err("this kernel does not report how long its CPUs were idle\n");
    return false;
}

/* Finds the address of a function that is not exported to modules, with a probe. */
static void *address_of(const char *name)
{
    struct kprobe probe = {.symbol_name = name};
    int error = register_kprobe(&probe);

    if (error) {
        pr_err("cannot wait for kfree_rcu: no %s (%d)\n", name, error);
        return NULL;
    }
    unregister_kprobe(&probe);
    return probe.addr;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
/* Waits until all objects passed to kfree_rcu are free, including those in sheaves (from 6.18 on).
 * Modules may call kvfree_rcu_barrier() up to 7.2 only. */
static void (*settle_kfree_rcu)(void);

bool settle_start(void)
{
    settle_kfree_rcu = address_of("kvfree_rcu_barrier");
    return settle_kfree_rcu && idle_time_is_known();
}
#else
/* Scan function of kfree_rcu's shrinker. It starts the work that frees the objects gathered on each
 * CPU, as the kernel's own timer does after five seconds. */
static unsigned long (*hand_on)(struct shrinker *shrinker, struct shrink_control *control);

bool settle_start(void)
{
    hand_on = address_of("kfree_rcu_shrink_scan");
    return hand_on && idle_time_is_known();
}

/* The batches that one call starts wait for a grace period (a callback), and then for a worker. A
 * CPU has two such batches; a call starts none while both are under way. */
static void settle_kfree_rcu(void)
{
    struct shrink_control control;

    do {
        control = (struct shrink_control){.gfp_mask = GFP_KERNEL, .nr_to_scan = LONG_MAX};
        rcu_barrier();
        __flush_workqueue(system_wq); /* the flush_workqueue() macro warns about system_wq */
    } while (hand_on(NULL, &control) != SHRINK_STOP);
    rcu_barrier();
    __flush_workqueue(system_wq);
}
#endif

#define LOOK_MS  50
#define LOOKS    400

/* Waits for decay, which merges latent objects that no thread returns to (kernel/shrinker.c). */
static void settle_prudence(void)
{
    struct prudence_stats stats;
    unsigned int looks;

    for (looks = 0; looks < LOOKS; looks++) {
        prudence_stats(&stats);
        if (!stats.latent_bytes)
            return;
        msleep(LOOK_MS);
    }
    pr_warn("BENCH: %llu bytes are latent after %u ms\n", stats.latent_bytes, LOOKS * LOOK_MS);
}

void settle(void)
{
    settle_kfree_rcu();
    rcu_barrier();
    settle_prudence();
}

u64 busy_ns(void)
{
    u64 now = ktime_get_ns(), busy = 0;
    unsigned int cpu;

    for_each_online_cpu(cpu)
        busy += now - get_cpu_idle_time_us((int)cpu, NULL) * NSEC_PER_USEC;
    return busy;
}
