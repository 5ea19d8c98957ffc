/* SPDX-License-Identifier: MIT */
/*
 * Ends caches. The structures of the last caches destroyed are kept (some hundred bytes each), with
 * the trace of the call that destroyed each, so a later use is reported by name, with or without
 * check=1. Nothing else of a destroyed cache is kept.
 *
 * A cache with live objects is not destroyed. The refusal is reported once for each calling place,
 * with the number of objects; under check=1 also with the traces of the calls that allocated them,
 * each once.
 */
#include "heap/cache_life.h"

#include "gp/user/domain.h"
#include "heap/cold.h"
#include "heap/upcalls.h"
#include "slab/all_caches.h"
#include "slab/cache.h"

#define GRAVES 64

/* Protected by slab_caches_lock; reports of misuse read without the lock. */
static struct grave {
    struct prudence_cache *cache;
    uint32_t destroyed_by; /* a trace, or 0 if unknown */
} cache_graves[GRAVES];
static unsigned next_cache_grave;

static uint32_t trace_here(const struct prudence_cache *cache)
{
    return heap_upcalls.trace ? heap_upcalls.trace(cache) : 0;
}

static void tell_trace(const char *title, uint32_t trace)
{
    if (heap_upcalls.print_trace)
        heap_upcalls.print_trace(title, trace);
}

static void bury(struct prudence_cache *cache)
{
    struct grave *grave, oldest;
    uint32_t destroyed_by = trace_here(cache);

    os_lock_take(&slab_caches_lock);
    grave = &cache_graves[next_cache_grave];
    next_cache_grave = (next_cache_grave + 1) % GRAVES;
    oldest = *grave;
    *grave = (struct grave){.cache = cache, .destroyed_by = destroyed_by};
    os_lock_release(&slab_caches_lock);
    if (oldest.cache)
        cold_forget(oldest.cache);
}

void cache_life_refuse(const struct prudence_cache *cache, const char *what)
{
    if (!cache)
        os_panic("%s: the cache is NULL", what);
    os_report_misuse("%s: cache '%s' (%p) was destroyed", what, cache->name, (const void *)cache);
    tell_trace("called by:", trace_here(NULL));
    for (unsigned i = 0; i < GRAVES; i++)
        if (cache_graves[i].cache == cache)
            tell_trace("destroyed by:", cache_graves[i].destroyed_by);
    os_abort();
}

/* -------------------------------------------------------------------------------------- the end */

bool cache_life_end(struct prudence_cache *cache, const char *what, void *caller)
{
    size_t live = cold_live(cache);

    /* Other threads may still use the cache's remains, so CPUs have to be fenced. */
    os_calls_widen();
    if (!live) {
        cold_settle(cache);
        if (cache_destroy(cache, &live)) {
            bury(cache);
            return true;
        }
    }
    if (gp_is_first_from(caller)) {
        os_report("%s, called from %p: cache '%s' has %zu live object%s; it is not destroyed", what,
                  caller, cache->name, live, live == 1 ? "" : "s");
        if (heap_upcalls.explain_live)
            heap_upcalls.explain_live(cache);
    }
    return false;
}
