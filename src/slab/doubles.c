/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The last look for objects that were freed or deferred twice, when a process ends.
 *
 * Every object is in one place (cache.h). One that was given back twice is in two, unless a copy was allocated again. A copy on
 * a CPU's stack or ring is in no bitmap, so two such copies do not meet by themselves. Here all stacks and rings are
 * emptied: what is free goes to its slab, what is latent to its latent slab, and bitmaps that refuse an object
 * report it (node.c). This needs no grace period, because latent objects stay latent.
 *
 * Other threads may go on meanwhile, or stand still for good with a lock of theirs. So the lock of the list of caches and
 * the CPUs' caches are tried for a short while only; CPUs' caches that were passed over are counted. All are claimed before
 * one fence for all CPUs, as in a fork (fork.c), so the look costs one system call however many CPUs there are. An owner
 * takes a node's lock here, which other owners may not: no thread waits for a CPU's caches while it holds such a lock, and
 * those that wait for all of them (fork, destruction) hold the lock of the list.
 */
#include "slab/doubles.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cache.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"

#define TRIES    64 /* for what another thread holds, some hundred microseconds in all */
#define PAUSE_NS 5000

static bool is_child; /* its parent looks, and to look would copy the pages that they share */
static uint64_t passed_over;

void doubles_fork_child(void)
{
    is_child = true;
}

bool doubles_may_look(void)
{
    return !is_child;
}

uint64_t doubles_passed_over(void)
{
    return load_relaxed(&passed_over);
}

static bool has_objects(const struct cpu_cache *cpu)
{
    return load_relaxed(&cpu->slots) && (stack_count(&cpu->line) || latent_count(cpu));
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

/* Closes again and again: the batch stays open where there is no place for its cookie (latent_close). */
static void return_latent(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    void *objects[TRANSFER_MAX];
    gp_cookie cookie;
    unsigned taken;

    latent_take_back(cache, cpu);
    do {
        latent_close(cache, cpu);
        taken = latent_take_oldest(cache, cpu, objects, TRANSFER_MAX, &cookie);
        if (taken)
            node_overflow(cache, objects, taken, cookie);
    } while (taken);
}

/* Passes those over that could not be claimed, or where a thread on that CPU took its caches at the same moment
 * (os_percpu.h). */
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

/* The same of the caller's CPU alone, where the others are out of reach. */
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

/* On their way from the idle helper to the nodes. */
static void receive_all(struct prudence_cache *cache)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        node_latent_objects(&cache->nodes[i], &bytes);
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

void doubles_look(void)
{
    char token;
    struct list *item;
    bool reached = os_percpu_reaches_others();

    if (!lock_list()) {
        add_relaxed(&passed_over, os_cpu_count());
        return;
    }
    store_relaxed(&slab_process_ends,
                  true); /* what other threads report from now on says so, too */
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
