/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Drains CPUs: moves safe or free objects from their caches to the nodes, when memory is wanted
 * elsewhere, when a CPU has gone quiet, or when its caches are taken away.
 *
 * Each step owns the CPU's caches, for a batch at most. Between steps it visits the nodes and owns
 * nothing.
 */
#include "slab/reclaim/drain.h"

#include "base/pace.h"
#include "gp/gp.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/node.h"
#include "slab/object_cache.h"
#include "slab/reclaim/poll_objects.h"

/* Policy: when do other CPUs' objects come back? */
#define OWNER_PAUSE_NS 5000     /* ns; between two tries while the CPU's owner is busy */
#define QUIET_NS       10000000 /* ns; a CPU without a move for as long is quiet */

static unsigned held_by(const struct cpu_cache *cpu)
{
    return stack_count(&cpu->line) + latent_cache_count(cpu);
}

static bool holds_nothing(const struct cpu_cache *cpu)
{
    return held_by(cpu) == 0 && !load_relaxed(&cpu->ahead);
}

/* Takes the caches of the caller's own CPU, which costs no system call. */
static bool take_if_here(struct prudence_cache *cache, struct cpu_cache *cpu, const void *token)
{
    struct cpu_cache *taken;

    if (cpu->line.cpu != os_cpu_current())
        return false;
    taken = cpu_cache_take(cache, token);
    if (taken && taken != cpu)
        cpu_cache_release(taken); /* the caller was moved to another CPU */
    return taken == cpu;
}

/* Objects and arrays that one step takes out of a CPU's caches. */
struct haul {
    struct prudence_cache *cache;
    bool free_ones;        /* takes free objects, too */
    bool ring;             /* takes safe objects */
    unsigned unwanted;     /* most objects to take from the object cache */
    unsigned size;         /* takes objects beyond this size */
    bool latent;           /* the taken objects are latent */
    struct arrays smaller; /* arrays for that size; afterwards the old ones */
    void *arrays;          /* arrays of a CPU that needs none, and their bytes */
    size_t bytes;
    gp_cookie cookie; /* of latent objects */
    unsigned taken;
    void *objects[TRANSFER_MAX];
};

typedef void (*visit_step)(struct os_percpu_line *line, void *haul);

/* Runs `step` as the owner. Returns false if that is not the caller's CPU, or another thread owns
 * the caches. */
static bool visit_here(struct cpu_cache *cpu, struct haul *haul, visit_step step)
{
    haul->taken = 0;
    if (!take_if_here(haul->cache, cpu, haul))
        return false;
    step(&cpu->line, haul);
    cpu_cache_release(cpu);
    return true;
}

/* Runs `step` as the owner on any CPU. Owners are quick unless they lost their CPU, so a few short
 * waits are enough. */
static bool visit_patiently(struct cpu_cache *cpu, struct haul *haul, visit_step step)
{
    if (visit_here(cpu, haul, step))
        return true;
    for (unsigned tries = 0; tries < 4 && os_percpu_reaches_others(); tries++) {
        if (cpu_cache_visit_remote(cpu, haul, step, haul))
            return true;
        os_sleep_ns(OWNER_PAUSE_NS);
    }
    return false;
}

/* Closes the open batch, takes back the ring's reservation, and takes safe objects, else free
 * ones. */
static void take_safe_or_free(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    if (!cpu->slots)
        return;
    latent_cache_close(haul->cache, cpu);
    latent_cache_take_back(haul->cache, cpu);
    haul->taken = latent_cache_take_safe(haul->cache, cpu, haul->objects, TRANSFER_MAX);
    if (!haul->taken && haul->free_ones) {
        haul->taken = object_cache_take(cpu, haul->objects, TRANSFER_MAX);
        count_add(&cpu->counts.unstacked, haul->taken);
    }
}

/* Takes unwanted objects in the same way. */
static void take_unwanted(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    haul->taken = 0;
    if (!cpu->slots)
        return;
    if (haul->ring) {
        latent_cache_close(haul->cache, cpu);
        latent_cache_take_back(haul->cache, cpu);
        haul->taken = latent_cache_take_safe(haul->cache, cpu, haul->objects, TRANSFER_MAX);
    }
    if (haul->taken || !haul->unwanted)
        return;
    haul->taken =
        object_cache_take(cpu, haul->objects, (unsigned)min_size(haul->unwanted, TRANSFER_MAX));
    haul->unwanted -= haul->taken;
    count_add(&cpu->counts.unstacked, haul->taken);
}

/* Takes latent objects, safe or not. */
static void take_latent(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    latent_cache_close(haul->cache, cpu);
    haul->taken =
        latent_cache_take_oldest(haul->cache, cpu, haul->objects, TRANSFER_MAX, &haul->cookie);
}

static void take_arrays(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    latent_cache_take_back(haul->cache, cpu);
    haul->arrays = cpu_cache_detach_arrays(haul->cache, cpu, &haul->bytes);
}

/* Frees the arrays of a CPU if they hold no object, and returns their bytes. The CPU gets small
 * ones again by demand. */
static size_t drop_arrays_by(bool (*visit)(struct cpu_cache *cpu, struct haul *haul,
                                           visit_step step),
                             struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct haul haul UNINITIALIZED;

    haul.cache = cache;
    haul.arrays = NULL;
    if (!visit(cpu, &haul, take_arrays) || !haul.arrays)
        return 0;
    os_arrays_free(haul.arrays, haul.bytes);
    return haul.bytes;
}

static size_t drop_arrays(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    return load_relaxed(&cpu->slots) && holds_nothing(cpu)
               ? drop_arrays_by(visit_patiently, cache, cpu)
               : 0;
}

/* Takes objects beyond a size. If there are none, shrinks the caches to that size. */
static void take_beyond(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;
    unsigned count = stack_count(line);

    haul->taken = 0;
    if (cpu->size <= haul->size)
        return;
    latent_cache_close(haul->cache, cpu);
    latent_cache_take_back(haul->cache, cpu);
    if (count > haul->size) {
        haul->taken = object_cache_take(cpu, haul->objects,
                                        (unsigned)min_size(count - haul->size, TRANSFER_MAX));
        count_add(&cpu->counts.unstacked, haul->taken);
    } else if (!cpu_cache_shrink(haul->cache, cpu, haul->size, &haul->smaller)) {
        haul->taken = latent_cache_take_safe(haul->cache, cpu, haul->objects, TRANSFER_MAX);
        haul->latent = !haul->taken;
        if (haul->latent)
            haul->taken = latent_cache_take_oldest(haul->cache, cpu, haul->objects, TRANSFER_MAX,
                                                   &haul->cookie);
    }
}

/* Makes one move of drain_to_size(). Returns false after the last. */
static bool move_beyond(struct cpu_cache *cpu, struct haul *haul)
{
    haul->latent = false;
    os_in_flight_begin();
    if (visit_here(cpu, haul, take_beyond) && haul->taken) {
        if (haul->latent)
            node_overflow(haul->cache, haul->objects, haul->taken, haul->cookie);
        else
            node_flush(haul->cache, haul->objects, haul->taken);
    }
    os_in_flight_end();
    return haul->taken > 0;
}

/* Shrinks the caches of the current CPU; objects beyond `size` go to the nodes. Returns false if
 * another thread owns the caches, the caller has moved to another CPU, or there is no memory for
 * smaller arrays. */
bool drain_to_size(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned size)
{
    struct haul haul UNINITIALIZED;

    haul.cache = cache;
    haul.size = size;
    haul.smaller = cpu_cache_arrays_for(cache, size);
    if (!haul.smaller.block)
        return false;
    while (move_beyond(cpu, &haul))
        ;
    cpu_cache_arrays_free(haul.smaller);
    return load_relaxed(&cpu->size) <= size;
}

/* Closes the CPU's open batch, and returns safe objects to the nodes, also free ones if
 * `free_ones`. Gives up if another thread owns the caches. What the CPU holds now bounds the number
 * of steps, because a CPU that is in use brings more after each. Returns the number of objects. */
static size_t empty_cpu_by(bool (*visit)(struct cpu_cache *cpu, struct haul *haul, visit_step step),
                           struct prudence_cache *cache, struct cpu_cache *cpu, bool free_ones)
{
    unsigned held = held_by(cpu);
    struct haul haul;
    size_t moved = 0;

    haul.cache = cache;
    haul.free_ones = free_ones;
    if (holds_nothing(cpu))
        return 0;
    do {
        os_in_flight_begin();
        if (!visit(cpu, &haul, take_safe_or_free))
            haul.taken = 0;
        if (haul.taken)
            node_flush(cache, haul.objects, haul.taken);
        os_in_flight_end();
        moved += haul.taken;
    } while (haul.taken && moved < held);
    return moved;
}

static size_t empty_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool free_ones)
{
    return empty_cpu_by(visit_patiently, cache, cpu, free_ones);
}

/* Polls what is still latent, of all CPUs and in the latent slabs. */
static void poll_all_objects(struct prudence_cache *cache)
{
    for (unsigned cpu = 0; cache->percpu && cpu < os_cpu_count(); cpu++)
        poll_objects_of_cpu(cache, cpu_cache_of(cache, cpu), cpu == os_cpu_current());
    poll_objects_of_nodes(cache);
}

/* Drains all CPUs, including free objects if `free_ones`, merges safe objects, and shrinks each
 * node to `keep` free slabs. Returns the bytes of the slabs that went. */
size_t drain_then_shrink(struct prudence_cache *cache, bool free_ones, unsigned keep)
{
    for (unsigned cpu = 0; cache->percpu && cpu < os_cpu_count(); cpu++)
        empty_cpu(cache, cpu_cache_of(cache, cpu), free_ones);
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS))
        poll_all_objects(cache);
    return node_shrink_to(cache, keep);
}

bool drain_any_in_rings(const struct prudence_cache *cache)
{
    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++)
        if (latent_cache_count(cpu_cache_of(cache, i)))
            return true;
    return false;
}

/* Returns whether any object is latent in a slab, or on the way there. */
bool drain_any_in_slabs(struct prudence_cache *cache)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < os_node_count(); i++)
        if (node_latent_objects(&cache->body->nodes[i], &bytes))
            return true;
    return false;
}

/* Returns whether any object is deferred and not merged. */
bool drain_leaves_latent(struct prudence_cache *cache)
{
    return drain_any_in_rings(cache) || drain_any_in_slabs(cache);
}

/* Frees only arrays that were empty before, because a CPU that is in use would soon make them
 * again. */
size_t drain_fully(struct prudence_cache *cache)
{
    for (unsigned cpu = 0; cache->percpu && cpu < os_cpu_count(); cpu++)
        drop_arrays(cache, cpu_cache_of(cache, cpu));
    return drain_then_shrink(cache, true, 0);
}

static void drain_next(struct prudence_cache *cache)
{
    drain_fully(cache);
}

void drain_all_caches(void)
{
    all_caches_visit(drain_next);
}

/* Drains one CPU after the other, skipping CPUs that must not be disturbed, and shrinks nodes,
 * until `wanted` bytes have gone or nothing remains. */
size_t drain_cpus(struct prudence_cache *cache, size_t wanted)
{
    size_t bytes = 0;

    for (unsigned i = 0; cache->percpu && i < os_cpu_count() && bytes < wanted; i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);

        if (!os_may_disturb(i))
            continue;
        bytes += drop_arrays(cache, cpu);
        if (empty_cpu(cache, cpu, true) && bytes < wanted)
            bytes += node_shrink_all(cache, wanted - bytes);
    }
    return bytes;
}

/* Returns the bytes of arrays that drain_cpus() would free. */
size_t drain_array_bytes(const struct prudence_cache *cache)
{
    size_t bytes = 0;

    for (unsigned i = 0; cache->percpu && i < os_cpu_count(); i++) {
        const struct cpu_cache *cpu = cpu_cache_of(cache, i);
        unsigned size = load_relaxed(&cpu->size);

        if (load_relaxed(&cpu->slots) && holds_nothing(cpu) && os_may_disturb(i))
            bytes += cpu_cache_array_bytes(cache, size);
    }
    return bytes;
}

/* Closes all batches, and moves safe objects to the nodes, also free ones if `free_ones`. */
void drain_cache(struct prudence_cache *cache, bool free_ones)
{
    drain_then_shrink(cache, free_ones, cache->body->free_limit);
}

/* Does the same without disturbing another CPU or waiting for a lock: visits the caller's own CPU
 * and the safe objects in latent slabs, where most are when much is latent. */
void drain_here(struct prudence_cache *cache)
{
    if (cache->percpu)
        empty_cpu_by(visit_here, cache, cpu_cache_of(cache, os_cpu_current()), false);
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS)) {
        if (cache->percpu)
            poll_objects_here(cache);
        poll_objects_of_nodes(cache);
    }
    for (unsigned node = 0; node < os_node_count(); node++)
        node_try_shrink(&cache->body->nodes[node], cache->body->free_limit);
}

static void retire_cpu_of(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct haul haul;

    haul.cache = cache;
    empty_cpu(cache, cpu, true);
    while (load_relaxed(&cpu->slots) && visit_patiently(cpu, &haul, take_latent) && haul.taken)
        node_overflow(cache, haul.objects, haul.taken, haul.cookie);
}

/* Retires a CPU: free and safe objects go to the nodes, latent ones to their latent slabs. */
void drain_dead_cpu(unsigned cpu)
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->percpu)
            retire_cpu_of(cache, cpu_cache_of(cache, cpu));
    }
    os_lock_release(&slab_caches_lock);
}

/* Takes a batch of any objects, or the arrays if no object remains. */
static void take_all(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    haul->taken = 0; /* another thread may have emptied the caches in between */
    haul->latent = false;
    take_safe_or_free(line, data);
    if (!haul->taken && latent_cache_count(cpu)) {
        haul->latent = true;
        take_latent(line, data);
    }
    if (!haul->taken || holds_nothing(cpu))
        take_arrays(line, data);
}

/* Empties a CPU that threads no longer use, and frees its arrays. Gives up if another thread owns
 * the caches, or threads that have come back bring more than it held. Each visit does all it can,
 * because it costs a system call. */
void drain_left(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    unsigned held = held_by(cpu), moved = 0;
    struct haul haul;

    haul.cache = cache;
    haul.free_ones = true;
    haul.arrays = NULL;
    do {
        os_in_flight_begin();
        if (!cpu_cache_visit_remote(cpu, &haul, take_all, &haul))
            haul.taken = 0;
        if (haul.taken && haul.latent)
            node_overflow(cache, haul.objects, haul.taken, haul.cookie);
        else if (haul.taken)
            node_flush(cache, haul.objects, haul.taken);
        os_in_flight_end();
        moved += haul.taken;
    } while (haul.taken && !haul.arrays && moved < held);
    if (haul.arrays)
        os_arrays_free(haul.arrays, haul.bytes);
}

/*
 * Drains strays, which are objects on CPUs that have gone quiet. Called when demand would grow the
 * cache, and in a kernel by periodic work. Checks at most every QUIET_NS, and drains CPUs,
 * including the caller's own, on which nothing has moved since the last check. So objects on a
 * quiet CPU are back within two checks. Returns whether any moved.
 */
bool drain_quiet_cpus(struct prudence_cache *cache)
{
    size_t moved = 0;

    if (!cache->percpu || !os_percpu_reaches_others() ||
        !is_time_again(&cache->body->quiet_checked_at, os_clock_ns(), QUIET_NS))
        return false;
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);
        uint64_t word = load_relaxed(&cpu->line.stack_word);
        uint64_t tail = load_relaxed(&cpu->line.ring_tail);
        size_t drained = 0;

        if (holds_nothing(cpu) || !os_may_disturb(i))
            continue;
        if (load_relaxed(&cpu->quiet_word) == word && load_relaxed(&cpu->quiet_tail) == tail)
            drained = empty_cpu(cache, cpu, true);
        store_relaxed(&cpu->quiet_word, load_relaxed(&cpu->line.stack_word));
        store_relaxed(&cpu->quiet_tail, tail);
        moved += drained;
        if (drained)
            add_relaxed(&cache->body->remote_drains, 1);
    }
    return moved > 0;
}

/* ------------------------------------------------------------------------------------- unwanted */

#define UNWANTED_LEAST ((size_t)64 << 10) /* bytes; least that are worth taking from a busy CPU */

/*
 * Returns whether a CPU is at rest: one refill would serve all moves since the last check. The
 * objects there came from many slabs, and each keeps a slab from going back, but a refill takes
 * from few (ADR 101). A CPU is not at rest if it `had` no more than such a CPU keeps in use, which
 * is a refill's objects and as many latent ones.
 */
static bool is_at_rest(uint64_t had, uint64_t moved)
{
    return had > (uint64_t)2 * TRANSFER_MAX && moved < TRANSFER_MAX;
}

/*
 * Finds the objects that a CPU has kept without use since the last check. N pops reach at most N
 * objects deep into the object cache, so deeper objects were not wanted. If nothing has moved, or
 * the CPU is at rest, all are unwanted.
 */
static void look_at_cpu(const struct prudence_cache *cache, const struct cpu_cache *cpu,
                        struct drain_place *place)
{
    uint64_t word = load_relaxed(&cpu->line.stack_word), before = load_relaxed(&cpu->decay_word);
    uint64_t deferred = load_relaxed(&cpu->line.ring_tail) - load_relaxed(&cpu->decay_tail);
    uint64_t pops = (word >> STACK_COUNT_BITS) - (before >> STACK_COUNT_BITS);
    size_t count = word & STACK_COUNT_MASK, had = before & STACK_COUNT_MASK;
    size_t unwanted = pops < had ? min_size(count, had - pops) : 0;

    place->looked = true;
    place->ring = !deferred || is_at_rest(latent_cache_count(cpu), deferred);
    place->unused = !deferred && word == before;
    if (is_at_rest(had, pops))
        unwanted = count;
    else if ((word != before || deferred) &&
             (unwanted < count / 2 || unwanted * cache->body->stride < UNWANTED_LEAST))
        unwanted = 0;
    place->unwanted = narrow(unsigned, unwanted);
    place->left += (count - unwanted) * cache->body->stride;
}

static bool has_unwanted(const struct cpu_cache *cpu, const struct drain_place *place)
{
    return place->unwanted || (place->ring && latent_cache_count(cpu));
}

/* Returns whether a CPU keeps arrays without use. In a process, budget_share.c and abandoned.c know
 * that better. */
static bool has_unused_arrays(const struct cpu_cache *cpu, const struct drain_place *place)
{
    return !OS_REMOTE_IS_QUICK && place->unused && held_by(cpu) == 0;
}

/* Note the state that the next check compares with. */
static void note_ring(struct cpu_cache *cpu)
{
    store_relaxed(&cpu->decay_tail, load_relaxed(&cpu->line.ring_tail));
}

static void note_stack(struct cpu_cache *cpu)
{
    store_relaxed(&cpu->decay_word, load_relaxed(&cpu->line.stack_word));
}

/* Makes one move, without waiting for the CPU's owner. Returns false if nothing was there, another
 * thread owns the caches, or the move would interrupt another CPU. */
static bool move_unwanted(struct prudence_cache *cache, struct cpu_cache *cpu,
                          struct drain_place *place)
{
    struct haul haul UNINITIALIZED;

    haul.cache = cache;
    haul.ring = place->ring;
    haul.unwanted = place->unwanted;
    haul.taken = 0;
    os_in_flight_begin();
    if (!visit_here(cpu, &haul, take_unwanted) &&
        !(OS_REMOTE_IS_QUICK && cpu_cache_visit_remote(cpu, &haul, take_unwanted, &haul)))
        haul.taken = 0;
    if (haul.taken)
        node_flush(cache, haul.objects, haul.taken);
    os_in_flight_end();
    place->unwanted = haul.unwanted;
    return haul.taken > 0;
}

/*
 * Moves unwanted objects of the CPU at *place to the nodes, and in a kernel frees arrays that were
 * not used since the last check and are empty. Each of *moves takes a batch at most.
 * Returns false if the moves are used up; the next call goes on. Called by one thread at a time for
 * each CPU.
 */
bool drain_unwanted_of(struct prudence_cache *cache, struct drain_place *place, unsigned *moves)
{
    struct cpu_cache *cpu = cpu_cache_of(cache, place->cpu);

    if (!load_relaxed(&cpu->slots) || !os_may_disturb(place->cpu))
        return true;
    if (!place->looked) {
        look_at_cpu(cache, cpu, place);
        note_ring(cpu);
        if (place->unwanted)
            add_relaxed(&cache->body->remote_drains, 1);
    }
    while (has_unwanted(cpu, place)) {
        if (!*moves)
            return false;
        --*moves;
        if (!move_unwanted(cache, cpu, place))
            break;
    }
    if (has_unused_arrays(cpu, place))
        drop_arrays_by(visit_here, cache, cpu);
    note_stack(cpu);
    place->looked = false;
    return true;
}

/* Does the same for all CPUs, one after the other. */
bool drain_unwanted(struct prudence_cache *cache, struct drain_place *place, unsigned *moves)
{
    for (; place->cpu < os_cpu_count(); place->cpu++)
        if (!drain_unwanted_of(cache, place, moves))
            return false;
    return true;
}

/* Returns whether the CPU has kept anything without use; takes nothing. */
bool drain_is_wanted(const struct prudence_cache *cache, unsigned cpu_number)
{
    const struct cpu_cache *cpu = cpu_cache_of(cache, cpu_number);
    struct drain_place place = {.cpu = cpu_number};

    if (!load_relaxed(&cpu->slots) || !os_may_disturb(cpu_number))
        return false;
    look_at_cpu(cache, cpu, &place);
    return has_unwanted(cpu, &place) || has_unused_arrays(cpu, &place);
}

/* Notes a check of a CPU that has kept nothing without use. */
void drain_note(struct prudence_cache *cache, unsigned cpu_number)
{
    struct cpu_cache *cpu = cpu_cache_of(cache, cpu_number);

    note_ring(cpu);
    note_stack(cpu);
}

/* Returns the bytes in the object caches of all CPUs. */
uint64_t drain_cached(const struct prudence_cache *cache)
{
    uint64_t objects = 0;

    for (unsigned i = 0; i < os_cpu_count(); i++)
        objects += stack_count(&cpu_cache_of(cache, i)->line);
    return objects * cache->body->stride;
}
