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

#include "debug/check.h"
#include "debug/stack_depot.h"
#include "gp/user/domain.h"
#include "heap/cold.h"
#include "slab/all_caches.h"
#include "slab/cache.h"
#include "slab/node.h"

#define GRAVES       64
#define NAMED_AT_END 8 /* traces that are reported, of calls that allocated live objects */

/* Protected by slab_caches_lock; reports of misuse read without the lock. */
static struct grave {
    struct prudence_cache *cache;
    uint32_t destroyed_by; /* a trace, or 0 if unknown */
} cache_graves[GRAVES];
static unsigned next_cache_grave;

static void bury(struct prudence_cache *cache)
{
    struct grave *grave, oldest;
    uint32_t destroyed_by = is_checked(cache) ? stack_depot_here() : 0;

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
    stack_depot_print("called by:", stack_depot_here());
    for (unsigned i = 0; i < GRAVES; i++)
        if (cache_graves[i].cache == cache)
            stack_depot_print("destroyed by:", cache_graves[i].destroyed_by);
    os_abort();
}

/* --------------------------------------------------------------------------------- live objects */

/* Objects that the same calls allocated. */
struct live_group {
    const void *first;
    size_t count;
    uint32_t trace;
};

struct live_objects {
    struct live_group groups[NAMED_AT_END]; /* in the order in which they were found */
    unsigned count;
    size_t others; /* objects of further groups */
};

static void join_group(struct live_objects *live, const void *object, uint32_t trace)
{
    unsigned at = 0;

    while (at < live->count && live->groups[at].trace != trace)
        at++;
    if (at == NAMED_AT_END) {
        live->others++;
        return;
    }
    if (at == live->count)
        live->groups[live->count++] = (struct live_group){.first = object, .trace = trace};
    live->groups[at].count++;
}

static void note_live_of_slab(const struct slab *slab, struct live_objects *live)
{
    for (unsigned i = 0; i < slab->capacity; i++) {
        uint64_t word = load_relaxed(&object_words(slab)[i]);

        if (state_of_word(word) == OBJECT_LIVE)
            join_group(live, slab_object((struct slab *)slab, i, slab->cache->body->stride),
                       allocation_trace_of_word(word));
    }
}

static void note_live_of_node(struct slab_node *node, struct live_objects *live)
{
    struct list *item;

    os_lock_take(&node->lock);
    for (unsigned list = 0; list < SLAB_LISTS; list++) {
        list_for_each(item, &node->lists[list])
        {
            note_live_of_slab(list_entry(item, struct slab, link), live);
        }
    }
    os_lock_release(&node->lock);
}

static void tell_who_allocated(const struct prudence_cache *cache)
{
    struct live_objects live = {.count = 0};

    for (unsigned i = 0; i < os_node_count(); i++)
        note_live_of_node(&cache->body->nodes[i], &live);
    for (unsigned i = 0; i < live.count; i++) {
        const struct live_group *group = &live.groups[i];

        if (group->count == 1)
            os_report("  %p, allocated by:", group->first);
        else
            os_report("  %zu objects, of which %p is the first, allocated by:", group->count,
                      group->first);
        stack_depot_print_frames(group->trace);
    }
    if (live.others)
        os_report("  and %zu more, allocated by other calls", live.others);
}

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
        if (is_checked(cache))
            tell_who_allocated(cache);
    }
    return false;
}
