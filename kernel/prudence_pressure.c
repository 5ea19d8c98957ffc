// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_pressure.ko: memory to the edge. All but `leave_mb` of the guest's memory is taken; then every
 * CPU replaces objects as fast as it can with GFP_KERNEL and defers the old ones, while readers stay in
 * their sections for `reader_ms`, so that what is deferred in one grace period is more than there is left.
 * Allocations have to wait for latent objects: none may fail, and the OOM killer must not be called.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmstat.h>

static unsigned int seconds = 5;
module_param(seconds, uint, 0444);
static unsigned int leave_mb = 16;
module_param(leave_mb, uint, 0444);
MODULE_PARM_DESC(leave_mb, "memory above the watermarks that is left, in MB");
static unsigned int reader_ms = 60;
module_param(reader_ms, uint, 0444);
static int failed;
module_param(failed, int, 0444);

#define SIZE    512
#define LIVE    512 /* objects of a CPU */
#define THREADS 64

static struct prudence_cache *cache;
static LIST_HEAD(hog);
static atomic64_t updates, no_memory;

static unsigned long free_mb(void)
{
    long pages = si_mem_available(); /* above the watermarks */

    return pages > 0 ? pages >> (20 - PAGE_SHIFT) : 0;
}

static u64 oom_kills(void)
{
    static unsigned long events[NR_VM_EVENT_ITEMS];

    all_vm_events(events);
    return events[OOM_KILL];
}

static void take_memory(void)
{
    while (free_mb() > leave_mb) {
        struct page *page = alloc_page(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);

        if (!page)
            return;
        list_add(&page->lru, &hog);
        cond_resched();
    }
}

static void give_memory_back(void)
{
    struct page *page, *next;

    list_for_each_entry_safe(page, next, &hog, lru) {
        list_del(&page->lru);
        __free_page(page);
    }
}

static int update(void *unused)
{
    void **live = kvcalloc(LIVE, sizeof(*live), GFP_KERNEL);
    unsigned int i = 0;

    while (live && !kthread_should_stop()) {
        void *new = prudence_cache_alloc(cache, GFP_KERNEL);

        if (!new) {
            atomic64_inc(&no_memory);
            continue;
        }
        memset(new, 0x5a, SIZE);
        if (live[i])
            prudence_cache_free_deferred(cache, live[i]);
        live[i] = new;
        i = (i + 1) % LIVE;
        atomic64_inc(&updates);
        cond_resched();
    }
    for (i = 0; live && i < LIVE; i++)
        if (live[i])
            prudence_cache_free_deferred(cache, live[i]);
    kvfree(live);
    return 0;
}

static int read_long(void *unused)
{
    while (!kthread_should_stop()) {
        rcu_read_lock();
        mdelay(reader_ms);
        rcu_read_unlock();
        schedule_timeout_interruptible(2);
    }
    return 0;
}

static unsigned int number;

static void verdict(bool ok, const char *what)
{
    pr_info("%sok %u pressure.%s\n", ok ? "" : "not ", ++number, what);
    failed += !ok;
}

static int __init pressure_start(void)
{
    static struct task_struct *threads[THREADS];
    unsigned int count = 0, i, cpus = min(num_online_cpus(), 16u);
    static struct prudence_cache_stats stats;
    struct prudence_stats totals;
    u64 kills = oom_kills(), held_back;

    prudence_stats(&totals);
    held_back = totals.throttle_waits;
    cache = prudence_cache_create("pressure", SIZE, 0, 0, NULL);
    if (!cache)
        return -ENOMEM;
    take_memory();
    for (i = 0; i < cpus + 1; i++) {
        struct task_struct *task =
            kthread_run(i < cpus ? update : read_long, NULL, "prudence_edge");

        if (!IS_ERR(task))
            threads[count++] = task;
    }
    msleep(seconds * 1000);
    while (count)
        kthread_stop(threads[--count]);
    give_memory_back();
    prudence_cache_stats(cache, &stats);
    prudence_stats(&totals);
    pr_info(
        "# updates %lld pressure waits %llu held back %llu peak of pages %llu KB expedited %llu\n",
        atomic64_read(&updates), stats.pressure_waits, totals.throttle_waits - held_back,
        (stats.slabs_peak * stats.slab_size) >> 10, totals.expedited);
    verdict(oom_kills() == kills, "the_oom_killer_is_not_called");
    verdict(!atomic64_read(&no_memory), "no_allocation_fails");
    verdict(atomic64_read(&updates) > 1000, "work_went_on");
    verdict(stats.pressure_waits > 0 || totals.throttle_waits > held_back,
            "memory_was_at_its_edge");
    verdict(!prudence_cache_destroy(cache), "destroy_finds_nothing_live");
    return 0;
}

static void __exit pressure_stop(void)
{
}

module_init(pressure_start);
module_exit(pressure_stop);
MODULE_DESCRIPTION("Memory pressure on prudence.ko");
MODULE_LICENSE("Dual MIT/GPL");
