/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Caches follow threads from CPU to CPU (docs/explanation/scaling.md).
 *
 * The threads of a process wander. If they are few and the CPUs many, they would leave caches on
 * each CPU. So a slab cache is *crowded* once it has arrays on as many CPUs as the process has
 * threads. Then a CPU without arrays gets them in place of an abandoned one: the caller runs on a
 * CPU without arrays, so at most threads - 1 of the others are in use. A CPU is abandoned if
 * nothing has moved there since the last check. It is emptied and its arrays are freed. The new CPU
 * begins with the size that it had, and if it is on another node, that node's free objects are used
 * up before new slabs are made.
 *
 * That costs as much as some STAY_MISSES operations on a node. So the first STAY_MISSES misses on a
 * CPU go to the node, in case that the thread does not stay.
 *
 * The caller owns nothing and holds no lock. Checks of several threads may overlap, and a CPU on
 * which a thread pauses seems abandoned. This costs that thread some misses.
 */
#include "slab/reclaim/abandoned.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/node.h"
#include "slab/reclaim/drain.h"

/* Policy: when does a cache move to where its threads are? */
#define FEW_CPUS    4  /* CPUs; may have arrays, even if there are fewer threads */
#define STAY_MISSES 32 /* misses; on a CPU before it takes the place of another */
#define AT_A_TIME   2  /* CPUs; emptied: two, so that their number falls after threads end */

/* Returns the number of CPUs that may have arrays. */
static unsigned cpus_wanted(void)
{
    unsigned threads = os_thread_count();

    return threads ? (unsigned)max_size(threads, FEW_CPUS) : os_cpu_count();
}

/* Returns a value that changes when objects move through the caches of a CPU. */
static uint32_t moves_seen(const struct cpu_cache *cpu)
{
    return (uint32_t)(load_relaxed(&cpu->line.stack_word) +
                      (load_relaxed(&cpu->line.ring_tail) << STACK_COUNT_BITS));
}

/* Reads all other CPUs, those after this one first, and stores up to AT_A_TIME abandoned ones.
 * Returns the number of CPUs with arrays. */
static unsigned look(const struct prudence_cache *cache, struct cpu_cache *left[AT_A_TIME])
{
    unsigned used = 0, found = 0, here = os_cpu_current(), cpus = os_cpu_count();

    for (unsigned i = 1; i < cpus; i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, (here + i) % cpus);
        uint32_t word;

        if (!load_relaxed(&cpu->slots))
            continue;
        word = moves_seen(cpu);
        if (load_relaxed(&cpu->abandoned_word) == word && found < AT_A_TIME)
            left[found++] = cpu;
        store_relaxed(&cpu->abandoned_word, word);
        used++;
    }
    return used;
}

/* Empties an abandoned CPU, and returns the size of its caches. */
static unsigned take_place_of(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct slab_node *node = node_here(cache),
                     *its = &cache->body->nodes[os_node_of_cpu(cpu->line.cpu)];
    unsigned size = load_relaxed(&cpu->size);

    drain_left(cache, cpu);
    add_relaxed(&cache->body->remote_drains, 1);
    if (its != node)
        store_relaxed(&node->helper, its);
    return size;
}

/* Counts a miss of a CPU without arrays. Returns whether there were enough. */
static bool thread_stays(struct cpu_cache *cpu)
{
    uint32_t misses = load_relaxed(&cpu->abandoned_word) + 1;

    store_relaxed(&cpu->abandoned_word, misses);
    return misses > STAY_MISSES;
}

/* Makes room for a CPU that gets arrays. Returns the size with which it begins. */
static unsigned make_place(struct prudence_cache *cache)
{
    struct cpu_cache *left[AT_A_TIME] = {NULL};
    unsigned wanted = cpus_wanted(), used = 0, size = cache->body->size_min;

    if (wanted < os_cpu_count())
        used = look(cache, left);
    if (load_relaxed(&cache->body->crowded) != (used >= wanted))
        store_relaxed(&cache->body->crowded, used >= wanted);
    for (unsigned i = 0; i < AT_A_TIME && left[i] && used >= wanted; i++, used--)
        size = (unsigned)max_size(size, take_place_of(cache, left[i]));
    return size;
}

bool abandoned_follow(struct prudence_cache *cache)
{
    unsigned size = cache->body->size_min;

    if (os_cpu_count() > FEW_CPUS && os_percpu_reaches_others()) {
        if (load_relaxed(&cache->body->crowded) &&
            !thread_stays(cpu_cache_of(cache, os_cpu_current())))
            return false;
        size = make_place(cache);
    }
    return cpu_cache_grow(cache, size);
}
