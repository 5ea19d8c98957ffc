/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The last check, at the end of a process, for objects that were freed or deferred twice.
 *
 * Every object is in one place (cache_type.h). An object that was freed twice is in two, if no
 * copy was allocated again. A copy on a CPU's stack or ring is in no bitmap, so two such copies do
 * not meet by themselves. The check empties all stacks and rings: free objects go to their slabs,
 * latent ones to latent slabs, and a bitmap that refuses an object reports the double
 * (latent_slab.c).
 * This needs no grace period, because latent objects stay latent.
 *
 * Other threads may go on, or stand still for good with one of their locks held. So the list's lock
 * and the CPUs' caches are tried for a short while only, and skipped CPUs' caches are counted. All
 * are claimed before one fence for all CPUs, as in a fork (fork.c), so the check costs one system
 * call however many CPUs there are. Unlike other owners, this one takes a node's lock. That is safe
 * because no thread waits for a CPU's caches while it holds such a lock, and threads that wait for
 * all of them (fork, destruction) hold the lock of the list.
 */
#include "slab/double_free.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/misuse.h"
#include "slab/node.h"
#include "slab/object_cache.h"

#define TRIES    64 /* for locks and caches of other threads; some hundred microseconds in all */
#define PAUSE_NS 5000

static bool is_child; /* the parent checks; here a check would copy the pages that both share */
static uint64_t passed_over;

void double_free_fork_child(void)
{
    is_child = true;
}

bool double_free_may_look(void)
{
    return !is_child;
}

uint64_t double_free_passed_over(void)
{
    return load_relaxed(&passed_over);
}

static bool has_objects(const struct cpu_cache *cpu)
{
    return load_relaxed(&cpu->slots) && (stack_count(&cpu->line) || latent_cache_count(cpu));
}

static void try_to_claim(struct cpu_cache *cpu, const void *token)
{
    for (unsigned tries = 0; tries < TRIES && !os_percpu_claim(&cpu->line, token); tries++)
        os_sleep_ns(PAUSE_NS);
}

static void claim_all(struct prudence_cache *cache, const void *token)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (has_objects(cpu))
            try_to_claim(cpu, token);
    }
}

static void return_free(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    void *objects[TRANSFER_MAX];
    unsigned taken;

    while ((taken = object_cache_take(cpu, objects, TRANSFER_MAX))) {
        count_add(&cpu->counts.unstacked, taken);
        node_flush(cache, objects, taken);
    }
}

/* Closes before each take, because a batch stays open while there is no place for the cookie
 * (latent_cache_close). */
static void return_latent(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    void *objects[TRANSFER_MAX];
    gp_cookie cookie;
    unsigned taken;

    latent_cache_take_back(cache, cpu);
    do {
        latent_cache_close(cache, cpu);
        taken = latent_cache_take_oldest(cache, cpu, objects, TRANSFER_MAX, &cookie);
        if (taken)
            node_overflow(cache, objects, taken, cookie);
    } while (taken);
}

/* Returns the objects of all claimed CPUs. Skips CPUs that could not be claimed, or where a thread
 * took the caches at the same moment (os_percpu.h). */
static void return_all(struct prudence_cache *cache, const void *token)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (os_percpu_confirm(&cpu->line, token)) {
            return_free(cache, cpu);
            return_latent(cache, cpu);
            os_percpu_release(&cpu->line);
        } else if (has_objects(cpu)) {
            add_relaxed(&passed_over, 1);
        }
    }
}

/* Returns the objects of the caller's CPU only, for when the others are out of reach. */
static void return_here(struct prudence_cache *cache, const void *token)
{
    struct cpu_cache *cpu = cache->percpu ? cpu_cache_take(cache, token) : NULL;

    if (cpu) {
        if (cpu->slots) {
            return_free(cache, cpu);
            return_latent(cache, cpu);
        }
        cpu_cache_release(cpu);
    }
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        if (has_objects(cpu_cache_of(cache, i)))
            add_relaxed(&passed_over, 1);
}

/* Receives objects on their way from the idle helper to the nodes. */
static void receive_all(struct prudence_cache *cache)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        node_latent_objects(&cache->body->nodes[i], &bytes);
}

static bool lock_list(void)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        if (os_lock_try(&slab_caches_lock))
            return true;
        os_sleep_ns(PAUSE_NS);
    }
    return false;
}

void double_free_look(bool goes_on)
{
    char token;
    struct list *item;
    bool reached = os_percpu_reaches_others();

    if (!lock_list()) {
        add_relaxed(&passed_over, os_cpu_count());
        return;
    }
    /* reports of other threads then say so, too */
    store_relaxed(&slab_end, goes_on ? SLAB_END_GOES_ON : SLAB_END_ABORTS);
    for (item = slab_caches.next; reached && item != &slab_caches; item = item->next)
        claim_all(list_entry(item, struct prudence_cache, link), &token);
    reached = reached && os_percpu_fence_all();
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (reached) {
            return_all(cache, &token);
        } else {
            cpu_cache_release_all(cache, &token, false);
            return_here(cache, &token);
        }
        receive_all(cache);
    }
    os_lock_release(&slab_caches_lock);
}
