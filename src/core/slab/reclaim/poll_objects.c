/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Sifts latent objects whose grace period is not over: of domains whose readers name single objects
 * (gp_sift), those that no reader names are safe all the same. They go to their slabs as free. The
 * others go to their latent slabs, and wait on.
 *
 * When all latent objects of a node are sifted, those that are named leave the account of latent
 * bytes (latent_slab.c), and later sifts of the node count them anew. So what is left out never
 * exceeds what readers named at one time.
 *
 * A batch is detached first, from a CPU's ring or from latent slabs, and belongs to the thread that
 * sifts it, which owns no line and holds no node's lock. Meanwhile a slab counts the objects as
 * live, and the account of latent bytes still covers them. Fork waits for threads that carry a
 * batch.
 *
 * Each call looks at the objects that were there when it began, once.
 */
#include "slab/reclaim/sift.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/extension.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/reclaim/limit.h"
#include "slab/slab.h"

static void sift_tell_extensions(void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct slab *slab = slab_known(objects[i]);

        if (slab && unlikely(load_relaxed(&slab->extensions)))
            extensions_merged(slab, objects[i]);
    }
}

/* Sifts a detached batch, which `cookie` covers. A cache without caches of CPUs has objects of
 * different sizes, and passes them one by one. `apart`: what is named leaves the account. */
static void sift(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie,
                 bool apart)
{
    bool named = apart && gp_only_names_hold(cache->domain, cookie); /* from here on */
    struct slab *first = cache->percpu ? NULL : slab_known(objects[0]);
    size_t bytes = first ? slab_object_bytes(first) : cache->body->stride;
    unsigned safe = gp_sift(cache->domain, cookie, objects, count, bytes);

    if (safe) {
        sift_tell_extensions(objects, safe);
        limit_release(os_cpu_current(), safe * bytes);
        node_flush(cache, objects, safe);
    }
    if (safe < count)
        (named ? node_overflow_named : node_overflow)(cache, objects + safe, count - safe, cookie);
}

/* Sifts a batch that has to leave a ring. */
void sift_batch(struct prudence_cache *cache, void **objects, unsigned count, gp_cookie cookie)
{
    sift(cache, objects, count, cookie, false);
}

/* A batch on its way. */
struct sifting {
    struct prudence_cache *cache;
    unsigned taken;
    gp_cookie cookie;
    void *objects[TRANSFER_MAX];
};

/* Closes the open batch and detaches the oldest objects. Called by the owner. */
static void sift_detach(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct sifting *sifting = data;

    sifting->taken = 0;
    if (!cpu->slots)
        return;
    latent_cache_close(sifting->cache, cpu);
    sifting->taken = latent_cache_take_oldest(sifting->cache, cpu, sifting->objects, TRANSFER_MAX,
                                              &sifting->cookie);
}

/* Detaches objects of the CPU, which is the caller's if `here`. Takes none if another thread owns
 * the caches. */
static void sift_detach_from(struct cpu_cache *cpu, bool here, struct sifting *sifting)
{
    struct cpu_cache *taken;

    sifting->taken = 0;
    if (!here) {
        if (!cpu_cache_visit_remote(cpu, sifting, sift_detach, sifting))
            sifting->taken = 0;
        return;
    }
    taken = cpu_cache_take(sifting->cache, sifting);
    if (!taken)
        return;
    if (taken == cpu)
        sift_detach(&cpu->line, sifting);
    cpu_cache_release(taken);
}

static void sift_detached(struct sifting *sifting, bool apart)
{
    if (sifting->taken)
        sift(sifting->cache, sifting->objects, sifting->taken, sifting->cookie, apart);
}

/* Sifts a CPU's ring. */
void sift_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool here)
{
    struct sifting sifting UNINITIALIZED;
    unsigned left = latent_cache_count(cpu);

    sifting.cache = cache;
    sifting.taken = 1;
    for (; left && sifting.taken; left -= (unsigned)min_size(left, sifting.taken)) {
        os_carry_begin();
        sift_detach_from(cpu, here, &sifting);
        sift_detached(&sifting, false);
        os_carry_end();
    }
}

static void sift_node(struct prudence_cache *cache, struct slab_node *node)
{
    struct sifting sifting UNINITIALIZED;
    uint64_t bytes = 0;
    unsigned left = node_latent_objects(node, &bytes);

    sifting.cache = cache;
    sifting.taken = 1;
    for (; left && sifting.taken; left -= (unsigned)min_size(left, sifting.taken)) {
        os_carry_begin();
        sifting.taken = node_take_waiting(node, sifting.objects, TRANSFER_MAX, &sifting.cookie);
        sift_detached(&sifting, true);
        os_carry_end();
    }
}

/* Sifts all latent slabs of the cache. */
void sift_nodes(struct prudence_cache *cache)
{
    for (unsigned node = 0; node < os_node_count(); node++)
        sift_node(cache, &cache->body->nodes[node]);
}

/* Sifts this CPU's ring, for an allocation that would take further memory otherwise. */
void sift_here(struct prudence_cache *cache)
{
    sift_cpu(cache, cpu_cache_of(cache, os_cpu_current()), true);
}
