// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Counts events in SLUB by probes of slow paths, because Debian builds SLUB without SLUB_STATS. The
 * first argument of each function is the cache, or a barn, which lists the sheaves (from 6.18 on)
 * of one cache. The functions that take a barn are called by one of the others on the same CPU,
 * without preemption.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/prudence.h>
#include <linux/ptrace.h>
#include <linux/version.h>

#include "bench.h"

enum slub_count {
    SLUB_MISS,   /* the CPU's slab, or both sheaves, are empty */
    SLUB_REFILL, /* takes objects from a node's slabs */
    SLUB_FLUSH,  /* frees one object to a slab of no CPU, or moves a sheaf to the barn */
    SLUB_GROW,
    SLUB_SHRINK,
    SLUB_COUNTS,
    SLUB_FILLS, /* about to ask a barn; the probe of the barn counts */
    SLUB_EMPTIES,
};

static struct slub_probe {
    const char *const names[2]; /* a compiler may have split the function */
    enum slub_count what;
    enum slub_count inside; /* count of the caller, or SLUB_COUNTS if called with a cache */
    struct kprobe kprobe;
} slub_probes[] = {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
    {{"__pcs_replace_empty_main"}, SLUB_FILLS, SLUB_COUNTS},
    {{"barn_replace_empty_sheaf"}, SLUB_MISS, SLUB_FILLS},
    {{"refill_objects"}, SLUB_REFILL, SLUB_COUNTS},
    {{"__pcs_replace_full_main"}, SLUB_EMPTIES, SLUB_COUNTS},
    {{"barn_replace_full_sheaf", "barn_replace_full_sheaf.part.0"}, SLUB_FLUSH, SLUB_EMPTIES},
#else
    {{"___slab_alloc"}, SLUB_MISS, SLUB_COUNTS},
    {{"get_partial_node", "get_partial_node.part.0"}, SLUB_REFILL, SLUB_COUNTS},
    {{"__slab_free"}, SLUB_FLUSH, SLUB_COUNTS},
#endif
    {{"allocate_slab"}, SLUB_GROW, SLUB_COUNTS},
    {{"__free_slab"}, SLUB_SHRINK, SLUB_COUNTS},
};

static DEFINE_PER_CPU(u64[SLUB_COUNTS], slub_counts);
static DEFINE_PER_CPU(enum slub_count, slub_inside) = SLUB_COUNTS;
static atomic_long_t slub_slabs, slub_slabs_peak;

static void count_slub_slab(void)
{
    long now = atomic_long_inc_return(&slub_slabs), peak = atomic_long_read(&slub_slabs_peak);

    while (now > peak && !atomic_long_try_cmpxchg(&slub_slabs_peak, &peak, now))
        ;
}

static int count_slub(struct kprobe *kprobe, struct pt_regs *regs)
{
    const struct slub_probe *probe = container_of(kprobe, struct slub_probe, kprobe);
    bool ours = regs_get_kernel_argument(regs, 0) == (unsigned long)READ_ONCE(slub_cache);

    if (probe->what > SLUB_COUNTS) {
        __this_cpu_write(slub_inside, ours ? probe->what : SLUB_COUNTS);
        return 0;
    }
    if (probe->inside != SLUB_COUNTS) {
        ours = __this_cpu_read(slub_inside) == probe->inside;
        __this_cpu_write(slub_inside, SLUB_COUNTS);
    }
    if (!ours)
        return 0;
    __this_cpu_inc(slub_counts[probe->what]);
    if (probe->what == SLUB_GROW)
        count_slub_slab();
    else if (probe->what == SLUB_SHRINK)
        atomic_long_dec(&slub_slabs);
    return 0;
}

static u64 slub_sum(enum slub_count what)
{
    unsigned int cpu;
    u64 sum = 0;

    for_each_possible_cpu(cpu)
        sum += per_cpu(slub_counts, cpu)[what];
    return sum;
}

void slub_forget_counts(void)
{
    unsigned int cpu;

    for_each_possible_cpu(cpu)
        memset(per_cpu(slub_counts, cpu), 0, sizeof(slub_counts));
    atomic_long_set(&slub_slabs, 0);
    atomic_long_set(&slub_slabs_peak, 0);
}

static void unwatch(unsigned int probes)
{
    while (probes--)
        unregister_kprobe(&slub_probes[probes].kprobe);
}

bool slub_watch(void)
{
    unsigned int i, j;

    for (i = 0; i < ARRAY_SIZE(slub_probes); i++) {
        struct slub_probe *probe = &slub_probes[i];
        int error = -ENOENT;

        for (j = 0; j < ARRAY_SIZE(probe->names) && probe->names[j] && error; j++) {
            probe->kprobe =
                (struct kprobe){.symbol_name = probe->names[j], .pre_handler = count_slub};
            error = register_kprobe(&probe->kprobe);
        }
        if (error) {
            pr_warn("SLUB is not counted: no %s (%d)\n", probe->names[0], error);
            unwatch(i);
            return false;
        }
    }
    return true;
}

void slub_unwatch(void)
{
    unwatch(ARRAY_SIZE(slub_probes));
}

long slub_slabs_now(void)
{
    return atomic_long_read(&slub_slabs);
}

void slub_stats(struct prudence_cache_stats *stats)
{
    u64 misses = slub_sum(SLUB_MISS);

    stats->allocations = worker_sum(offsetof(struct worker, done));
    stats->hits = stats->allocations - min(stats->allocations, misses);
    stats->refills = slub_sum(SLUB_REFILL);
    stats->flushes = slub_sum(SLUB_FLUSH);
    stats->object_cache_churns = min(misses, stats->flushes);
    stats->grows = slub_sum(SLUB_GROW);
    stats->shrinks = slub_sum(SLUB_SHRINK);
    stats->slab_churns = min(stats->grows, stats->shrinks);
    stats->slabs_peak = (u64)atomic_long_read(&slub_slabs_peak);
}
