/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Drains what was in a CPU's ring when the ring had a given tail, and leaves what came later. Each
 * step owns the CPU's caches, for a batch at most. Between steps it visits the nodes and owns
 * nothing.
 */
#include "slab/reclaim/drain_ring.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"

/* Policy: when is another CPU's ring given up? */
#define OWNER_PAUSE_NS 5000 /* ns; between two tries while the CPU's owner is busy */
#define TRIES          4    /* tries; owners are quick unless they lost their CPU */

struct ring_haul {
    struct prudence_cache *cache;
    uint64_t tail;
    unsigned taken;
    gp_cookie cookie; /* of latent objects */
    void *objects[TRANSFER_MAX];
};

/* Returns the number of objects that were in the ring, and still are. Acquire: a caller that finds
 * none finds what the threads wrote that took them. */
static uint64_t left_in_ring(const struct cpu_cache *cpu, uint64_t tail)
{
    int64_t left = (int64_t)(tail - load_acquire(&cpu->line.ring_head));

    return left > 0 ? (uint64_t)left : 0;
}

/* Closes the open batch, and takes objects, safe or not. */
static void take_any(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct ring_haul *haul = data;

    if (!cpu->slots)
        return;
    latent_cache_close(haul->cache, cpu);
    haul->taken =
        latent_cache_take_oldest(haul->cache, cpu, haul->objects, TRANSFER_MAX, &haul->cookie);
}

/* Does the same with safe objects that were in the ring. */
static void take_safe_ones(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct ring_haul *haul = data;
    uint64_t left = left_in_ring(cpu, haul->tail);

    if (!cpu->slots || !left)
        return;
    latent_cache_close(haul->cache, cpu);
    haul->taken = latent_cache_take_safe(haul->cache, cpu, haul->objects,
                                         (unsigned)min_size(left, TRANSFER_MAX));
}

/* Runs `step` as the owner, once. Owners are quick unless they lost their CPU, so a few short waits
 * are enough. */
static void visit_ring(struct cpu_cache *cpu, struct ring_haul *haul,
                       void (*step)(struct os_percpu_line *line, void *haul))
{
    haul->taken = 0;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct cpu_cache *mine = NULL;

        if (cpu->line.cpu == os_cpu_current())
            mine = cpu_cache_take(haul->cache, haul);
        if (mine == cpu)
            step(&cpu->line, haul);
        if (mine)
            cpu_cache_release(mine);
        if (mine == cpu)
            return;
        if (os_percpu_reaches_others() && cpu_cache_visit_remote(cpu, haul, step, haul))
            return;
        os_sleep_ns(OWNER_PAUSE_NS);
    }
}

/* Moves objects, or only safe ones, to slabs, until there are none or all are out of the ring.
 * Returns whether all have. */
static bool drain_by(bool safe, struct prudence_cache *cache, unsigned cpu_number, uint64_t tail)
{
    struct cpu_cache *cpu = cpu_cache_of(cache, cpu_number);
    struct ring_haul haul UNINITIALIZED;

    haul.cache = cache;
    haul.tail = tail;
    haul.taken = 1;
    while (haul.taken && left_in_ring(cpu, tail)) {
        os_in_flight_begin();
        visit_ring(cpu, &haul, safe ? take_safe_ones : take_any);
        if (haul.taken && safe)
            node_flush(cache, haul.objects, haul.taken);
        else if (haul.taken)
            node_overflow(cache, haul.objects, haul.taken, haul.cookie);
        os_in_flight_end();
    }
    return !left_in_ring(cpu, tail);
}

/* Moves objects, safe or not. If some stay, another thread owns the caches. */
bool drain_ring(struct prudence_cache *cache, unsigned cpu_number, uint64_t tail)
{
    return drain_by(false, cache, cpu_number, tail);
}

bool drain_ring_safe(struct prudence_cache *cache, unsigned cpu_number, uint64_t tail)
{
    return drain_by(true, cache, cpu_number, tail);
}
