// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * prudence_pressure.ko runs out of memory. It takes all but `leave_mb` of the guest's memory. Then
 * every CPU replaces objects as fast as it can with GFP_KERNEL and defers the old ones, while a
 * reader stays in each section for `reader_ms`, so that more is deferred in one grace period than
 * remains. Allocations have to wait for latent objects; none may fail, and the OOM killer must not
 * run.
 *
 * Before that, on a guest with several nodes, one node's memory is used up; the slabs that its CPUs
 * make then must lie on another node.
 *
 * Last, others want memory while nearly all remaining memory is latent and a reader stays until the
 * kernel is about to kill. A grace period must be waited for first, but not by the notifier.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nmi.h>
#include <linux/notifier.h>
#include <linux/oom.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmstat.h>
#include <linux/workqueue.h>

#include "long_reader.h"
#include "seams.h"

static unsigned int seconds = 5;
module_param(seconds, uint, 0444);
static unsigned int leave_mb = 16;
module_param(leave_mb, uint, 0444);
MODULE_PARM_DESC(leave_mb, "MB of memory to leave above the watermarks");
static unsigned int reader_ms = 60;
module_param(reader_ms, uint, 0444);
static bool stays;
module_param(stays, bool, 0444);
MODULE_PARM_DESC(stays, "only the last test: the reader stays until the OOM killer would kill");
static int failed;
module_param(failed, int, 0444);

#define SIZE    512
#define LIVE    512 /* objects per CPU */
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

static void give_back(struct list_head *pages)
{
    struct page *page, *next;

    list_for_each_entry_safe(page, next, pages, lru) {
        list_del(&page->lru);
        __free_page(page);
    }
}

/* --------------------------------------------------------------- a node whose memory is used up */

#define GROWN 200 /* objects, enough for more than one slab */
#define SPARE 512 /* pages returned to the node afterwards */

static unsigned int helped, misplaced; /* objects on another node; objects in the wrong lists */

static void look_where(const void *object, int here)
{
    int there = page_to_nid(virt_to_page(object));

    helped += there != here;
    misplaced += there != prudence_node_of(object);
}

static void use_up(int node)
{
    struct page *page;

    while ((page = alloc_pages_node(node, __GFP_THISNODE | __GFP_NOWARN, 0)) != NULL) {
        list_add(&page->lru, &hog);
        cond_resched();
    }
}

/* Runs on a CPU of the node. */
static long grow_without_memory(void *unused)
{
    static void *grown[GROWN];
    int here = numa_mem_id();
    unsigned int i;
    LIST_HEAD(spare);

    use_up(here);
    for (i = 0; i < GROWN; i++) {
        grown[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        if (grown[i])
            look_where(grown[i], here);
    }
    while (i--)
        prudence_cache_free(cache, grown[i]);
    grown[0] = prudence_kmalloc(2 * PAGE_SIZE, GFP_KERNEL);
    if (grown[0])
        look_where(grown[0], here);
    prudence_kfree(grown[0]);
    for (i = 0; i < SPARE && !list_empty(&hog); i++)
        list_move(hog.next, &spare);
    give_back(&spare);
    return 0;
}

/* ------------------------------------------------------------------------ all memory is used up */

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

/* ------------------------------------------------------------- others want what is only latent */

static bool reader_inside, reader_may_leave;
static atomic_t kills_averted, kills;
/* Times that the notifier may sleep: once for a tick, more on PREEMPT_RT, where locks sleep. */
#define SLEEPS_MAX (IS_ENABLED(CONFIG_PREEMPT_RT) ? 20 : 2)

static bool first_waited;
static u64 waits_then;
static ktime_t asked_at;
static s64 answered_ms;
static unsigned long switches_then, first_slept; /* voluntary switches of the notifier */
static u64 latent_then, latent_after;

static u64 latent_kb(void)
{
    struct prudence_stats totals;

    prudence_stats(&totals);
    return totals.latent_bytes >> 10;
}

static int read_until_oom(void *unused)
{
    unsigned int ms;

    rcu_read_lock();
    WRITE_ONCE(reader_inside, true);
    for (ms = 0; !READ_ONCE(reader_may_leave) && ms < 20000; ms++) {
        mdelay(1);
        touch_softlockup_watchdog();
    }
    rcu_read_unlock();
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

static u64 waits(void)
{
    struct prudence_stats totals;

    prudence_stats(&totals);
    return totals.waits;
}

/* Called first of all OOM notifiers, when the kernel has tried everything else. */
static int oom_begins(struct notifier_block *block, unsigned long unused, void *freed)
{
    if (READ_ONCE(reader_may_leave))
        return NOTIFY_OK; /* asked again */
    asked_at = ktime_get();
    latent_then = latent_kb();
    waits_then = waits();
    switches_then = current->nvcsw;
    return NOTIFY_OK;
}

/* Called last. The kernel kills nothing if a notifier freed memory or claims to. Lets the reader
 * leave, unless `stays`, and after a kill would have happened ends the shortage. */
static int oom_ends(struct notifier_block *block, unsigned long unused, void *freed)
{
    unsigned long *pages = freed;

    if (!atomic_read(&kills_averted) && !atomic_read(&kills)) {
        first_slept = current->nvcsw - switches_then;
        answered_ms = ktime_ms_delta(ktime_get(), asked_at);
        latent_after = latent_kb();
        first_waited = waits() != waits_then;
    }
    if (*pages) {
        atomic_inc(&kills_averted);
        WRITE_ONCE(reader_may_leave, reader_may_leave || !stays);
    } else {
        WRITE_ONCE(reader_may_leave, true);
        atomic_inc(&kills);
        give_back(&hog);
        *pages = 1;
    }
    return NOTIFY_OK;
}

static struct notifier_block first = {.notifier_call = oom_begins, .priority = INT_MAX};
static struct notifier_block last = {.notifier_call = oom_ends, .priority = INT_MIN};

/* Fills `mb` MB, or less if memory runs out, with a chain of objects that are deferred later.
 * Allocates without reclaim, because KASAN needs memory to record each allocation and would invoke
 * the OOM killer. */
static void *fill_memory(unsigned int mb)
{
    void **object, **chain = NULL;
    u64 i;

    for (i = 0; i < ((u64)mb << 20) / SIZE; i++) {
        object = prudence_cache_alloc(cache, GFP_NOWAIT | __GFP_NOWARN);
        if (!object)
            break;
        *object = chain;
        chain = object;
    }
    return chain;
}

static void defer_chain(void **chain)
{
    while (chain) {
        void **next = *chain;

        prudence_cache_free_deferred(cache, chain);
        chain = next;
    }
}

/* Allocates until something would have been killed; `mb` is more than there is. */
static void want_memory(unsigned int mb, struct list_head *wanted)
{
    struct page *page;
    u64 i;

    for (i = 0; i < (u64)mb << (20 - PAGE_SHIFT); i++) {
        page = alloc_page(GFP_KERNEL | __GFP_NOWARN);
        if (!page)
            break;
        list_add(&page->lru, wanted);
        if (READ_ONCE(reader_may_leave))
            break;
    }
}

static void others_want_memory(void)
{
    struct task_struct *reader = kthread_create(read_until_oom, NULL, "prudence_reader");
    unsigned int cpu = cpumask_last(cpu_online_mask);
    LIST_HEAD(wanted);
    void **chain;

    if (IS_ERR(reader))
        return;
    WRITE_ONCE(reader_inside, false);
    WRITE_ONCE(reader_may_leave, false);
    take_memory();
    chain = fill_memory(leave_mb * 3 / 4);
    kthread_bind(reader, cpu != raw_smp_processor_id() ? cpu : cpumask_first(cpu_online_mask));
    wake_up_process(reader);
    while (!READ_ONCE(reader_inside))
        schedule_timeout_uninterruptible(1);
    register_oom_notifier(&first);
    register_oom_notifier(&last);
    defer_chain(chain);
    want_memory(8 * leave_mb, &wanted);
    unregister_oom_notifier(&last);
    unregister_oom_notifier(&first);
    WRITE_ONCE(reader_may_leave, true);
    kthread_stop(reader);
    give_back(&wanted);
    give_back(&hog);
}

static unsigned int number; /* of verdicts */

static void verdict(bool ok, const char *what)
{
    pr_info("%sok %u pressure.%s\n", ok ? "" : "not ", ++number, what);
    failed += !ok;
}

static void work_at_the_edge(void)
{
    static struct task_struct *threads[THREADS];
    unsigned int count = 0, i, cpus = min(num_online_cpus(), 16u);
    static struct prudence_cache_stats stats;
    struct prudence_stats totals;
    u64 kills_before = oom_kills(), held_back;

    prudence_stats(&totals);
    held_back = totals.throttle_waits;
    take_memory();
    for (i = 0; i < cpus + 1; i++) {
        struct task_struct *task =
            kthread_run(i < cpus ? update : read_long, &reader_ms, "prudence_edge");

        if (!IS_ERR(task))
            threads[count++] = task;
    }
    msleep(seconds * 1000);
    while (count)
        kthread_stop(threads[--count]);
    give_back(&hog);
    prudence_cache_stats(cache, &stats);
    prudence_stats(&totals);
    pr_info(
        "# updates %lld pressure waits %llu held back %llu peak of pages %llu KB expedited %llu\n",
        atomic64_read(&updates), stats.pressure_waits, totals.throttle_waits - held_back,
        (stats.slabs_peak * stats.slab_size) >> 10, totals.expedited);
    verdict(oom_kills() == kills_before, "the_oom_killer_is_not_called");
    verdict(!atomic64_read(&no_memory), "no_allocation_fails");
    verdict(atomic64_read(&updates) > 1000, "work_went_on");
    verdict(stats.pressure_waits > 0 || totals.throttle_waits > held_back,
            "memory_was_at_its_edge");
}

static void say_of_kills(void)
{
    pr_info("# kills averted %d, not averted %d, latent %llu KB, after %lld ms and %lu sleeps %llu KB\n",
            atomic_read(&kills_averted), atomic_read(&kills), latent_then, answered_ms, first_slept,
            latent_after);
    verdict(!first_waited, "nobody_waits_for_a_reader_while_the_kernel_asks");
    verdict(first_slept <= SLEEPS_MAX, "the_notifier_sleeps_a_tick_at_most");
}

static int __init pressure_start(void)
{
    unsigned int i;

    cache = prudence_cache_create("pressure", SIZE, 0, 0, NULL);
    if (!cache)
        return -ENOMEM;
    if (!stays && num_online_nodes() > 1) {
        work_on_cpu(cpumask_first(cpu_online_mask), grow_without_memory, NULL);
        pr_info("# of a node without memory: %u objects, pages of another node: %u\n", GROWN + 1,
                helped);
        verdict(helped > 0, "another_node_helps");
        verdict(!misplaced, "slabs_are_of_the_node_that_their_pages_lie_on");
    }
    if (!stays)
        work_at_the_edge();
    if (num_online_cpus() > 1 && !stays) {
        /* A single averted kill is enough. Memory that another thread is freeing at that moment is
         * not counted, so a try may fail. */
        for (i = 0; i < 5 && !atomic_read(&kills_averted); i++)
            others_want_memory();
        say_of_kills();
        verdict(atomic_read(&kills_averted) > 0,
                "latent_memory_is_waited_for_before_anything_is_killed");
    } else if (stays) {
        others_want_memory();
        say_of_kills();
        verdict(atomic_read(&kills) > 0, "a_reader_that_stays_is_not_waited_for_for_ever");
    }
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
