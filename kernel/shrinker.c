// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Returns memory when others want it (shrinker, OOM notifier, memory hotplug), and makes the rounds
 * of decay, also for latent memory that no deferral returns to.
 */

#include "compat.h"
#include "gp_kernel.h"
#include "module.h"
#include "os_kernel.h"
#include "seams.h"
#include "slab/all_caches.h"
#include "slab/node.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/stats.h"

#define LOOK_EVERY  16       /* slow deferrals between two checks of the budget */
#define DECAY_AFTER (HZ / 4) /* between two rounds of decay */
#define WAIT_AFTER  HZ       /* the same, while a reader stays */
#define VAIN_ROUNDS 4        /* consecutive rounds without gain that end them */
#define VISIT_MOVES 16       /* batches of objects, or slabs, moved before others may run */
#define VISITS_MAX  64       /* visits in one run of a work item */

/*
 * Decay (slab/reclaim/decay.c) runs in a work item, because slow paths may run where the list's
 * lock must not be taken. A slow deferral starts the rounds, which end when nothing is latent and
 * VAIN_ROUNDS rounds in a row gained nothing; free slabs stay for two rounds. The timer is not
 * deferrable, or memory of a finished load would stay for as long as the machine idles (ADR 101).
 *
 * A round takes nothing from other CPUs, because each batch would interrupt them. A CPU that has
 * kept objects without use gets a work item of its own, for which no thread waits (ADR 101). If
 * that CPU goes offline first, the item runs elsewhere and takes nothing, because hotplug.c drains
 * dead CPUs. Progress does not depend on decay, and the shrinker waits for no work item.
 */
static void decay_round(struct work_struct *work);
static DECLARE_DELAYED_WORK(decay_work, decay_round);
static uint32_t decay_pending; /* a round is due */

/* Queues a round on this CPU, or on a housekeeping CPU if this one is isolated. While preemption is
 * off, the kernel keeps its mask, which newer ones replace at run time (RCU), and no CPU that is
 * online stops. So the timer is started on a CPU that runs, and the kernel moves it if that stops
 * later. */
static void queue_round(unsigned long after)
{
    preempt_disable();
    schedule_delayed_work_on(housekeeping_any_cpu(HK_TYPE_DOMAIN), &decay_work, after);
    preempt_enable();
}

static DEFINE_PER_CPU(struct work_struct, decay_cpu_work);

static void decay_this_cpu(struct work_struct *work)
{
    struct decay_pass pass = {.place.cpu = raw_smp_processor_id()};
    unsigned visits = 0;

    if (work != per_cpu_ptr(&decay_cpu_work, pass.place.cpu))
        return; /* that CPU has gone offline */
    while (visits++ < VISITS_MAX && decay_pass(&pass, VISIT_MOVES))
        cond_resched();
    decay_pass_end(&pass);
}

static void decay_cpus(void)
{
    unsigned int cpu;

    for_each_online_cpu(cpu)
        if (decay_is_wanted_on(cpu))
            schedule_work_on((int)cpu, per_cpu_ptr(&decay_cpu_work, cpu));
}

static gp_cookie last_asked; /* cookie of the last round that found latent objects */

/* Returns the delay until the next round, or 0 if there is none. Rounds during a load gain nothing
 * either, so a round counts as vain only if nothing is latent. */
static unsigned long next_round(void)
{
    static uint64_t kept_before;
    static unsigned vain; /* consecutive rounds without gain */
    uint64_t kept = decay_kept();
    bool waits = limit_used() > 0;

    vain = waits || kept < kept_before ? 0 : vain + 1;
    kept_before = kept;
    if (waits)
        return gp_poll(gp_default_domain(), last_asked) ? DECAY_AFTER : WAIT_AFTER;
    if (vain < VAIN_ROUNDS)
        return DECAY_AFTER;
    vain = 0;
    return 0;
}

static void decay_round(struct work_struct *work)
{
    unsigned long after;
    unsigned visits = 0;

    (void)work;
    store_release(&decay_pending, 0u);
    while (visits++ < VISITS_MAX && decay_some(UINT_MAX, VISIT_MOVES))
        cond_resched(); /* the next round does the rest */
    decay_cpus();       /* a later round takes the objects that these drain */
    after = next_round();
    if (after && !exchange_relaxed(&decay_pending, 1u)) {
        if (limit_used()) /* the next round needs a grace period */
            last_asked = gp_snapshot(gp_default_domain());
        queue_round(after);
    }
}

/* Runs in an irq_work, because the deferring caller may hold locks of timers and work queues. */
static void decay_later(struct irq_work *unused)
{
    (void)unused;
    queue_round(DECAY_AFTER);
}

static struct irq_work decay_soon;

/* Called after each deferral on the slow path, with none of our locks held. */
void prudence_shrinker_note_deferral(void)
{
    static uint32_t seen;

    if (!load_relaxed(&decay_pending) && !exchange_relaxed(&decay_pending, 1u))
        irq_work_queue(&decay_soon);
    if (add_relaxed(&seen, 1) % LOOK_EVERY == 0)
        limits_look();
}

/* ------------------------------------------------------------------------------------- shrinker */

/* Drains and shrinks all caches, and returns the bytes that went. The caller holds
 * slab_caches_lock, which is released. */
static size_t shrink_and_release(void)
{
    struct list *item;
    size_t bytes = 0;

    list_for_each(item, &slab_caches)
    {
        bytes += drain_fully(list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
    return bytes;
}

/* Allocates nothing under the lock, so the lock's holder never waits for the memory freed here. */
static void shrink_all(void)
{
    os_lock_take(&slab_caches_lock);
    shrink_and_release();
}

static uint64_t bytes_used(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.used;
}

/* Returns the bytes of objects that are neither free nor deferred. */
static uint64_t live_bytes(const struct prudence_cache *cache)
{
    const struct cache_body *body = cache->body;
    uint64_t made, gone, bytes = body->stride;
    struct cache_sums sums;

    slab_stats_sum(cache, &sums);
    made = sums.hits + sums.misses;
    gone = sums.frees + sums.deferred;
    if (!cache->percpu) { /* blocks, of which free ones go at once */
        made = load_relaxed(&body->large_grown);
        gone = load_relaxed(&body->large_shrunk) + sums.latent_bytes;
        bytes = 1;
    }
    return made > gone ? (made - gone) * bytes : 0;
}

/* Counts pages that are free, cached, or free after a grace period, and unused arrays. */
static unsigned long count_pages(struct shrinker *shrinker, struct shrink_control *control)
{
    uint64_t used = bytes_used(), live = 0, arrays = 0;
    struct list *item;

    if (!os_lock_try(&slab_caches_lock))
        return 0;
    list_for_each(item, &slab_caches)
    {
        const struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        arrays += drain_array_bytes(cache);
        live += live_bytes(cache);
    }
    os_lock_release(&slab_caches_lock);
    return (unsigned long)(((used > live ? used - live : 0) + arrays) >> PAGE_SHIFT);
}

/* The caller holds slab_caches_lock. */
static size_t shrink_some(size_t (*shrink)(struct prudence_cache *cache, size_t wanted),
                          size_t wanted)
{
    struct list *item;
    size_t bytes = 0;

    list_for_each(item, &slab_caches)
    {
        if (bytes < wanted)
            bytes += shrink(list_entry(item, struct prudence_cache, link), wanted - bytes);
    }
    return bytes;
}

/* Frees as many pages as asked. Other CPUs are interrupted only if the nodes had too few. */
static unsigned long scan_pages(struct shrinker *shrinker, struct shrink_control *control)
{
    size_t wanted = control->nr_to_scan << PAGE_SHIFT, bytes;

    if (!os_lock_try(&slab_caches_lock))
        return SHRINK_STOP; /* another thread shrinks caches */
    bytes = shrink_some(node_shrink_all, wanted);
    if (bytes < wanted) {
        bytes += shrink_some(drain_cpus, wanted - bytes);
        gp_push(); /* a later scan finds the objects latent now */
    }
    os_lock_release(&slab_caches_lock);
    if (!bytes)
        return SHRINK_STOP;
    control->nr_scanned = max(control->nr_to_scan, (unsigned long)(bytes >> PAGE_SHIFT));
    return bytes >> PAGE_SHIFT;
}

static struct shrinker like = {
    .count_objects = count_pages, .scan_objects = scan_pages, .seeks = DEFAULT_SEEKS};
static struct shrinker *shrinker;

struct shrinker *prudence_shrinker(void)
{
    return shrinker;
}
EXPORT_SYMBOL_GPL(prudence_shrinker);

/*
 * Runs before the OOM killer picks a victim. The kernel holds a lock on which every thread that
 * wants memory waits, so this sleeps for at most a tick. While memory is latent, this expedites a
 * grace period and claims that something was freed, so the kernel retries and asks again. The claim
 * is a promise. Once the grace period is over, the memory that was latent is free. The answer
 * becomes no if that freed nothing (memory freed by others also counts), or if
 * wait_max_ms have passed because a reader stays.
 */
static struct {
    bool made;
    gp_cookie cookie;
    uint64_t used;         /* bytes in use when the promise was made */
    uint64_t until, asked; /* ns: end of the promise; time of the last question */
} promise;                 /* protected by the kernel's OOM lock */

/* Returns whether to claim progress. `busy`: another thread holds the list's lock, perhaps to give
 * back. */
static bool may_promise(bool busy, uint64_t used)
{
    struct prudence_domain *domain = gp_default_domain();
    uint64_t now = os_clock_ns();

    promise.asked = now;
    if (!promise.made) {
        if (!(busy || limit_used()) || !gp_worth_waiting(domain))
            return false;
        promise.made = true;
        promise.cookie = gp_snapshot(domain); /* the open batches are closed */
        promise.used = used;
        promise.until = now + load_relaxed(&slab_wait_max);
        gp_expedite();
        return true;
    }
    if (!busy && gp_poll(domain, promise.cookie))
        return false; /* the grace period freed nothing */
    if (now < promise.until)
        return true;
    gp_note_expired(domain);
    return false;
}

static int before_oom(struct notifier_block *block, unsigned long unused, void *freed)
{
    uint64_t before, after;
    bool busy;

    if (os_clock_ns() - promise.asked > load_relaxed(&slab_wait_max))
        promise.made = false; /* made during an earlier shortage */
    before = promise.made ? promise.used : bytes_used();
    busy = !os_lock_try(&slab_caches_lock);
    if (!busy)
        shrink_and_release();
    after = bytes_used();
    if (after < before) {
        promise.made = false;
        *(unsigned long *)freed += (before - after) >> PAGE_SHIFT;
    } else if (may_promise(busy, before)) {
        *(unsigned long *)freed += 1;
        schedule_timeout_uninterruptible(1);
    } else {
        promise.made = false;
    }
    return NOTIFY_OK;
}

static struct notifier_block oom_block = {.notifier_call = before_oom};

/* Expedites a grace period and frees free slabs before memory goes offline. Live slabs keep
 * memory online, as SLUB's do. Extends the page map before pages of new memory can be allocated. */
static int memory_changes(struct notifier_block *block, unsigned long action, void *data)
{
    const struct memory_notify *memory = data;

    if (action == MEM_GOING_ONLINE && !os_page_map_extend(memory->start_pfn + memory->nr_pages))
        return notifier_from_errno(-ENOMEM);
    if (action == MEM_GOING_OFFLINE) {
        gp_expedite();
        shrink_all();
    }
    return NOTIFY_OK;
}

static struct notifier_block memory_block = {.notifier_call = memory_changes};

int prudence_shrinker_start(void)
{
    unsigned int cpu;
    int error;

    for_each_possible_cpu(cpu)
        INIT_WORK(per_cpu_ptr(&decay_cpu_work, cpu), decay_this_cpu);
    os_irq_work_init(&decay_soon, decay_later);
    limits_look();
    shrinker = compat_shrinker_register(&like, "prudence");
    if (!shrinker)
        return -ENOMEM;
    error = register_oom_notifier(&oom_block);
    if (error)
        goto no_oom;
    error = register_memory_notifier(&memory_block);
    if (error)
        goto no_memory;
    if (os_page_map_cover()) /* covers memory added since os_kernel_start() */
        return 0;
    error = -ENOMEM;
    unregister_memory_notifier(&memory_block);
no_memory:
    unregister_oom_notifier(&oom_block);
no_oom:
    compat_shrinker_unregister(shrinker);
    shrinker = NULL;
    return error;
}

void prudence_shrinker_stop(void)
{
    unsigned int cpu;

    if (!shrinker)
        return;
    unregister_memory_notifier(&memory_block);
    unregister_oom_notifier(&oom_block);
    compat_shrinker_unregister(shrinker);
    store_relaxed(&decay_pending, 1u); /* keeps rounds from starting again */
    irq_work_sync(&decay_soon);
    cancel_delayed_work_sync(&decay_work);
    for_each_possible_cpu(cpu)
        cancel_work_sync(per_cpu_ptr(&decay_cpu_work, cpu));
}
