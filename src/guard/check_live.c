/* SPDX-License-Identifier: MIT */
/* Reports which calls allocated the live objects of a cache that cannot be destroyed, with one
 * trace for all objects that the same calls allocated. */
#include "guard/check.h"
#include "guard/stack_depot.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/node.h"

#define NAMED_AT_END 8 /* traces that are reported */

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

void check_live_explain(const struct prudence_cache *cache)
{
    struct live_objects live = {.count = 0};

    if (!is_checked(cache))
        return;
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
