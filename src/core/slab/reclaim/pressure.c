/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Memory is short: an allocation waits instead of failing (rule 9), and all caches are emptied
 * before the system has to kill.
 *
 * The lock of the list of caches is held while caches are emptied, never across a wait.
 */
#include "slab/reclaim/pressure.h"

#include "gp/gp_wait.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/extension.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

/* Policy: how long does an allocation pause before it fails? */
/* Pauses between two waits of an allocation whose memory other threads take first. They grow each
 * time. */
#define RECLAIM_PAUSE_MIN_NS 50000    /* ns; first pause after others took the memory */
#define RECLAIM_PAUSE_MAX_NS 10000000 /* ns; longest pause, because pauses grow */

/* Drains and shrinks all caches, except in the cache that wants memory. That one can use its free
 * slabs, and pages that go back may be out of its reach (a kernel keeps them in per-CPU lists).
 * Returns the bytes. */
static size_t drain_for(const struct prudence_cache *wants)
{
    struct list *item;
    size_t bytes = 0;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        bytes += drain_then_shrink(cache, true, cache == wants && cache->percpu ? ~0u : 0);
    }
    os_lock_release(&slab_caches_lock);
    return bytes;
}

/* Returns, after a pause, whether another wait makes sense: other threads may have taken the memory
 * of the last one. */
static bool may_reclaim_again(struct prudence_cache *cache, struct reclaim *reclaim)
{
    if (!reclaim->go_on || limit_used() < cache->body->slab_bytes ||
        os_clock_ns() - reclaim->began >= load_relaxed(&slab_wait_max))
        return false;
    os_sleep_ns(reclaim->pause);
    reclaim->pause = min_size(2 * reclaim->pause, RECLAIM_PAUSE_MAX_NS);
    return true;
}

/*
 * Called before an allocation fails (rule 9). Closes the open batches of all CPUs and caches, waits
 * for a grace period, merges, and shrinks everywhere. The caller then tries again, and after
 * another failure comes back with the same *reclaim (zero at first). Returns false if nothing more
 * is likely; the caller's next try is the last, and may fail, or go as far as the OOM killer. A
 * large block gets false at once when nothing was waited for and no page came, because only pages
 * can serve it.
 */
bool pressure_reclaim(struct prudence_cache *cache, os_alloc_flags flags, struct reclaim *reclaim)
{
    size_t bytes;

    if (!os_may_block(flags))
        return false;
    if (!reclaim->began) {
        reclaim->began = os_clock_ns();
        reclaim->pause = RECLAIM_PAUSE_MIN_NS;
    } else if (!may_reclaim_again(cache, reclaim)) {
        return false;
    }
    reclaim->go_on = false; /* unless a wait below ends well */
    extensions_pressure();
    bytes = drain_for(cache);
    if (limit_used() > 0 && gp_may_wait()) {
        add_relaxed(&wait_counts.pressure_waits, 1);
        add_relaxed(&cache->body->pressure_waits, 1);
        os_event(pressure_wait, cache, 1);
        reclaim->go_on = wait_for_domains(reclaim->began);
        os_event(pressure_done, cache, (unsigned)reclaim->go_on);
        bytes += drain_for(cache);
    }
    bytes += os_pages_trim();
    return cache->percpu || bytes || reclaim->go_on;
}

/*
 * Called after memory was taken from the system. If memory has become short, empties all caches and
 * purges their pages, before the system has to kill. Holds nothing and waits for nothing.
 */
void pressure_purge(void)
{
    if (likely(!os_memory_is_short()))
        return;
    extensions_pressure();
    drain_all_caches();
    os_pages_trim();
}
