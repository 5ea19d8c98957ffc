/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Slab caches and fork. While the process is copied, no thread owns a CPU's caches or a node's
 * lock, or carries objects between them. So in the child, too, every object is in one place, and
 * the child counts anew from that, whatever other threads were doing. If the CPUs of other threads
 * cannot be fenced (ADR 123), one operation of each may still end while the process is copied; the
 * child repairs the result. No thread owns caches that other handlers make in between.
 */
#include "gp/gp.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/double_free.h"
#include "slab/node.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/hollow.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/throttle.h"
#include "slab/slab.h"
#include "slab/start.h"
#include "slab/transfer_batch.h"

static char fork_token;
static bool fenced; /* all CPUs are, in the fork under way */

static size_t notes_bytes(void)
{
    return os_cpu_count() * sizeof(struct cpu_note);
}

static struct cpu_note no_notes; /* stands for notes that found no memory */

static void note_unfenced(struct prudence_cache *cache)
{
    if (fenced || !cache->percpu)
        return;
    cache->body->fork_notes = os_meta_alloc(notes_bytes());
    if (cache->body->fork_notes)
        cpu_cache_note_all(cache, cache->body->fork_notes);
    else
        cache->body->fork_notes = &no_notes;
}

static void drop_notes(struct prudence_cache *cache)
{
    if (cache->body->fork_notes && cache->body->fork_notes != &no_notes)
        os_meta_free(cache->body->fork_notes, notes_bytes());
    cache->body->fork_notes = NULL;
}

/* Runs in the child. A cache that another handler made since has no notes, and no thread owns it.
 * Once: the child of a fork within this fork goes on, and its own child comes here, too. */
static void repair_unfenced(struct prudence_cache *cache)
{
    if (cache->body->fork_notes)
        cpu_cache_repair_all(cache, &fork_token,
                             cache->body->fork_notes != &no_notes ? cache->body->fork_notes : NULL);
    drop_notes(cache);
}

void slab_fork_hold(void)
{
    os_lock_take(&slab_caches_lock);
    preflush_pause();
    os_in_flight_stop();
}

void slab_fork_let_go(void)
{
    os_in_flight_go_on();
    preflush_go_on();
    os_lock_release(&slab_caches_lock);
}

void slab_fork_prepare(void)
{
    struct list *item;

    preflush_pause();
    os_lock_take_for_fork(&slab_caches_lock);
    os_in_flight_stop();
    list_for_each(item, &slab_caches)
    {
        cpu_cache_claim_all(list_entry(item, struct prudence_cache, link), &fork_token);
    }
    fenced = os_percpu_fence_all();
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        cpu_cache_confirm_all(cache, &fork_token);
        note_unfenced(cache);
        for (unsigned i = 0; i < os_node_count(); i++)
            os_lock_take_for_fork(&cache->body->nodes[i].lock);
    }
}

void slab_fork_done(void)
{
    struct list *item;

    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        for (unsigned i = 0; i < os_node_count(); i++)
            os_lock_release_from_fork(&cache->body->nodes[i].lock);
        cpu_cache_release_all(cache, &fork_token, fenced);
        drop_notes(cache);
    }
    os_in_flight_go_on();
    os_lock_release_from_fork(&slab_caches_lock);
    preflush_go_on();
}

/* ------------------------------------------------------------------------------------ the child */

/* Counts the bytes that rings have reserved. */
static void count_rings(const struct prudence_cache *cache)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        const struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (cpu->slots)
            limit_add(i, (cpu->reserved - cpu->line.ring_head) * cache->body->stride,
                      cpu->ahead * cache->body->stride);
    }
}

static void fork_count_node(const struct prudence_cache *cache, struct slab_node *node)
{
    struct list *item;
    size_t objects = 0;

    list_for_each(item, &node->waiting)
    {
        list_entry(item, struct slab, waiting_link)->named = 0;
    }
    for (const struct transfer_batch *batch = node->handover; batch; batch = batch->next)
        objects += batch->count;
    limit_add(0, node->latent_bytes + objects * cache->body->stride, 0);
}

static void fork_count_anew(struct prudence_cache *cache)
{
    uint64_t slabs = 0;

    gp_domain_get(cache->domain);
    count_rings(cache);
    for (unsigned i = 0; i < os_node_count(); i++) {
        slabs += cache->body->nodes[i].slabs;
        hollow_fork_child(&cache->body->nodes[i]);
        fork_count_node(cache, &cache->body->nodes[i]);
    }
    cache->body->slabs_now = slabs;
    cache->body->visitors = 0; /* other threads' visits do not go on */
}

void slab_fork_child(bool whole)
{
    struct list *item;

    /* Runs also in a whole copy. Another thread may have begun to carry, and not have seen yet that
     * it may not. The copy has the mark of that thread, which does not exist here to remove it. */
    os_in_flight_forget_others();
    preflush_fork_child();
    decay_fork_child();
    double_free_fork_child();
    if (!whole) { /* another thread may have been forking, too */
        os_in_flight_go_on();
        preflush_go_on();
        return;
    }
    throttle_fork_child();
    limit_clear();
    list_for_each(item, &slab_caches)
    {
        repair_unfenced(list_entry(item, struct prudence_cache, link));
        fork_count_anew(list_entry(item, struct prudence_cache, link));
    }
    list_for_each(item, &slab_cold_caches)
    {
        gp_domain_get(list_entry(item, struct prudence_cache, link)->domain);
    }
}
