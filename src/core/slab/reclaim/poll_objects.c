/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Polls latent objects one by one before their grace period is over: in domains whose readers name
 * single objects (gp_poll_objects), those that no reader names are safe all the same. They go to
 * their slabs as free. The others go to their latent slabs, and wait on.
 *
 * When all latent objects of a node were polled, those that are named leave the account of latent
 * bytes (latent_slab.c), and later polls of the node count them anew. So what is skipped never
 * exceeds what readers named at one time.
 *
 * A batch is detached first, from a CPU's ring or from latent slabs, and belongs to the thread that
 * polls it, which owns no line and holds no node's lock. In that time a slab counts the objects as
 * live, and the account of latent bytes still covers them. Fork waits for threads that carry a
 * batch.
 *
 * Each call reads the objects that were there when it began, once.
 */
#include "slab/reclaim/poll_objects.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/extension.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/reclaim/limit.h"
#include "slab/slab.h"

static void poll_objects_tell_extensions(void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct slab *slab = slab_known(objects[i]);

        if (slab && unlikely(load_relaxed(&slab->extensions)))
            extensions_merged(slab, objects[i]);
    }
}

/* Polls a detached batch, which `cookie` covers. A cache without caches of CPUs has objects of
 * different sizes, and passes them one by one. `apart`: what is named leaves the account. */
static void poll_objects(struct prudence_cache *cache, void **objects, unsigned count,
                         gp_cookie cookie, bool apart)
{
    bool only_names = false;
    struct slab *first = cache->percpu ? NULL : slab_known(objects[0]);
    size_t bytes = first ? slab_object_bytes(first) : cache->body->stride;
    unsigned safe =
        gp_poll_objects(cache->domain, cookie, objects, count, bytes, apart ? &only_names : NULL);

    if (safe) {
        poll_objects_tell_extensions(objects, safe);
        limit_release(os_cpu_current(), safe * bytes);
        node_flush(cache, objects, safe);
    }
    if (safe < count)
        (only_names ? node_overflow_named : node_overflow)(cache, objects + safe, count - safe,
                                                           cookie);
}

/* Polls a batch that has to leave a ring. */
void poll_objects_of_batch(struct prudence_cache *cache, void **objects, unsigned count,
                           gp_cookie cookie)
{
    poll_objects(cache, objects, count, cookie, false);
}

/* A batch on its way. */
struct detached {
    struct prudence_cache *cache;
    unsigned taken;
    gp_cookie cookie;
    void *objects[TRANSFER_MAX];
};

/* Closes the open batch and detaches the oldest objects. Called by the owner. */
static void poll_objects_detach(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct detached *batch = data;

    batch->taken = 0;
    if (!cpu->slots)
        return;
    latent_cache_close(batch->cache, cpu);
    batch->taken =
        latent_cache_take_oldest(batch->cache, cpu, batch->objects, TRANSFER_MAX, &batch->cookie);
}

/* Detaches objects of the CPU, which is the caller's if `here`. Takes none if another thread owns
 * the caches. */
static void detach_from(struct cpu_cache *cpu, bool here, struct detached *batch)
{
    struct cpu_cache *taken;

    batch->taken = 0;
    if (!here) {
        if (!cpu_cache_visit_remote(cpu, batch, poll_objects_detach, batch))
            batch->taken = 0;
        return;
    }
    taken = cpu_cache_take(batch->cache, batch);
    if (!taken)
        return;
    if (taken == cpu)
        poll_objects_detach(&cpu->line, batch);
    cpu_cache_release(taken);
}

static void poll_detached(struct detached *batch, bool apart)
{
    if (batch->taken)
        poll_objects(batch->cache, batch->objects, batch->taken, batch->cookie, apart);
}

/* Polls a CPU's ring. */
void poll_objects_of_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool here)
{
    struct detached batch UNINITIALIZED;
    unsigned left = latent_cache_count(cpu);

    batch.cache = cache;
    batch.taken = 1;
    for (; left && batch.taken; left -= (unsigned)min_size(left, batch.taken)) {
        os_in_flight_begin();
        detach_from(cpu, here, &batch);
        poll_detached(&batch, false);
        os_in_flight_end();
    }
}

static void poll_objects_of_node(struct prudence_cache *cache, struct slab_node *node)
{
    struct detached batch UNINITIALIZED;
    uint64_t bytes = 0;
    unsigned left = node_latent_objects(node, &bytes);

    batch.cache = cache;
    batch.taken = 1;
    for (; left && batch.taken; left -= (unsigned)min_size(left, batch.taken)) {
        os_in_flight_begin();
        batch.taken = node_take_waiting(node, batch.objects, TRANSFER_MAX, &batch.cookie);
        poll_detached(&batch, true);
        os_in_flight_end();
    }
}

/* Polls all latent slabs of the cache. */
void poll_objects_of_nodes(struct prudence_cache *cache)
{
    for (unsigned node = 0; node < os_node_count(); node++)
        poll_objects_of_node(cache, &cache->body->nodes[node]);
}

/* Polls this CPU's ring, for an allocation that would take further memory otherwise. */
void poll_objects_here(struct prudence_cache *cache)
{
    poll_objects_of_cpu(cache, cpu_cache_of(cache, os_cpu_current()), true);
}
