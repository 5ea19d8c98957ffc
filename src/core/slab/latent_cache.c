/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The latent cache: a ring of deferred objects for each CPU, oldest first, in batches. The last
 * batch is open, and the fast path appends to it. Closed batches have a cookie and become safe in
 * order.
 *
 * Closing a batch takes three steps in this order: detach (own the CPU, so that no append is under
 * way, and read the tail), full fence, cookie. gp_snapshot() does the last two. A cookie taken
 * before the detach could predate the unlink of an object that another thread on this CPU pushed in
 * between.
 *
 * Only the CPU's owner calls these functions.
 */
#include "slab/latent_cache.h"

#include "gp/gp.h"
#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/cpu_cache.h"
#include "slab/extension.h"
#include "slab/reclaim/budget.h"
#include "slab/reclaim/limit.h"
#include "slab/reuse.h"
#include "slab/slab.h"

#define MERGE_MAX 1024 /* objects; a batch is as large when many share a cookie */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return (int64_t)(a - b) < 0 ? a : b;
}

/* Sets the place where the fast path must stop: the end of the open batch, the limit of the ring,
 * the end of the ring's turn, or the end of the reservation, whichever comes first. At the start of
 * a turn the fast path must stop at once, because the newest object is in the last slot, where it
 * does not look for an object that is deferred twice. */
void latent_cache_set_stop(struct cpu_cache *cpu, unsigned batch)
{
    uint64_t head = load_relaxed(&cpu->line.ring_head), limit = head + cpu->size;
    uint64_t tail = load_relaxed(&cpu->line.ring_tail);
    uint64_t mask = cpu->line.ring_mask;
    uint64_t turn = tail & ~mask;
    uint64_t stop = earlier(earlier(cpu->closed + batch, limit), turn + mask + 1);

    stop = earlier(stop, cpu->reserved);
    if ((int64_t)(stop - tail) < 0 || (tail == turn && tail != head))
        stop = tail;
    cpu->line.ring_turn = (uintptr_t)cpu->line.ring - turn * sizeof cpu->line.ring[0];
    os_percpu_stop_ring(&cpu->line, stop);
}

/* ------------------------------------------------------------------------------ reserving ahead */

static void set_ahead(struct prudence_cache *cache, struct cpu_cache *cpu, unsigned ahead)
{
    int64_t change = ((int64_t)ahead - cpu->ahead) * (int64_t)cache->body->stride;

    cpu->reserved = load_relaxed(&cpu->line.ring_tail) + ahead;
    store_relaxed(&cpu->ahead, ahead);
    limit_ahead_note(cpu->line.cpu, change);
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
}

/*
 * Reserves a batch for later appends, as far as limit and share allow. Returns whether at least one
 * object may be appended, and whether unused reservations of this CPU's rings should be taken back.
 */
enum latent_room latent_cache_open(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    unsigned ahead = (unsigned)(cpu->reserved - load_relaxed(&cpu->line.ring_tail));
    unsigned share =
        limit_ahead_share(cpu->line.cpu, cache->body->stride, cpu->ahead, batch_of(cache, cpu));
    unsigned wanted = share ? share : 1;

    if (ahead < wanted) {
        if (limit_reserve(cpu->line.cpu, (wanted - ahead) * cache->body->stride))
            ahead = wanted;
        else if (!ahead && wanted > 1 && limit_reserve(cpu->line.cpu, cache->body->stride))
            ahead = 1;
    }
    set_ahead(cache, cpu, ahead);
    return !ahead ? LATENT_NO_ROOM : share ? LATENT_ROOM : LATENT_ROOM_CROWDED;
}

/* Returns whether a whole batch is reserved. */
bool latent_cache_is_open(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    return cpu->reserved - load_relaxed(&cpu->line.ring_tail) >= batch_of(cache, cpu);
}

/* Reserves room for one object, whatever the limit says. */
void latent_cache_open_past_limit(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    limit_reserve_past(cpu->line.cpu, cache->body->stride);
    set_ahead(cache, cpu, (unsigned)(cpu->reserved - load_relaxed(&cpu->line.ring_tail)) + 1);
}

/* Releases the reservation ahead, so the next append needs the slow path. */
void latent_cache_take_back(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    uint64_t unused = cpu->reserved - load_relaxed(&cpu->line.ring_tail);

    set_ahead(cache, cpu, 0);
    if (unused)
        limit_release(cpu->line.cpu, unused * cache->body->stride);
}

/* -------------------------------------------------------------------------------------- batches */

/* Returns the oldest closed batch that still has objects, or NULL. */
static struct batch *oldest_batch(struct cpu_cache *cpu)
{
    uint64_t head = load_relaxed(&cpu->line.ring_head);

    for (; cpu->batch_head != cpu->batch_tail; cpu->batch_head++) {
        struct batch *batch = &batches_of(cpu)[cpu->batch_head & cpu->batch_mask];

        /* A batch that ends at the head is empty; the idle helper may even be inside the next
         * one. */
        if ((int64_t)(batch->end - head) > 0)
            return batch;
    }
    return NULL;
}

/* Returns the place for the cookie of a batch that ends at the tail: the newest batch if it has the
 * same cookie, else a new place, or NULL if none remains. */
static struct batch *place_for(struct cpu_cache *cpu, gp_cookie cookie)
{
    unsigned mask = cpu->batch_mask;
    struct batch *newest = &batches_of(cpu)[(cpu->batch_tail - 1) & mask];

    if (cpu->batch_tail != cpu->batch_head && gp_is_same(newest->cookie, cookie))
        return newest;
    if (cpu->batch_tail - cpu->batch_head > mask)
        return NULL;
    return &batches_of(cpu)[cpu->batch_tail++ & mask];
}

/*
 * Closes the open batch. Batches with the same cookie are joined: while a reader keeps a grace
 * period from ending, misses close batches of single objects, and those must not use up the places.
 * When all places are used, the batch stays open and grows.
 */
void latent_cache_close(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    uint64_t tail = load_relaxed(&cpu->line.ring_tail);
    struct batch *batch;
    gp_cookie cookie;

    if (tail == cpu->closed)
        return;
    cookie = gp_snapshot(cache->domain);
    batch = place_for(cpu, cookie);
    if (!batch)
        return;
    *batch = (struct batch){.end = tail, .cookie = cookie};
    store_relaxed(&cpu->closed_cookie.value, cookie.value);
    os_event_until(close, cache, narrow(unsigned, tail - cpu->closed), cookie);
    if (GP_CALLERS_DRIVE)
        limit_due_note(cpu->line.cpu, (tail - cpu->closed) * cache->body->stride);
    gp_note_closed(narrow(unsigned, tail - cpu->closed), cache->body->stride);
    store_release(&cpu->closed, tail); /* pairs with the acquires in preflush.c and stats.c */
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
}

/* Policy: how soon does a deferring thread try for safe objects again? */
#define TRY_AGAIN_AFTER    32                  /* batches; passed over after a try was refused */
#define LOOK_AGAIN_OBJECTS ((size_t)512)       /* objects; passed over while another CPU drives */
#define LOOK_AGAIN_BYTES   ((size_t)256 << 10) /* bytes; should return to the CPU's memory caches */

/*
 * Returns the number of batches to pass over after a try. If another CPU ends grace periods, those
 * of LOOK_AGAIN_OBJECTS. If readers were asked, at most as many, and for large objects those of
 * LOOK_AGAIN_BYTES, because objects should return while they are in the CPU's memory caches (ADR
 * 37). Each try in a row that is too early for the next question costs some 60 ns, so it passes
 * over one batch more.
 */
static uint16_t batches_to_skip(const struct prudence_cache *cache, struct cpu_cache *cpu,
                                enum gp_tried tried)
{
    size_t most, least;

    if (tried != GP_LATER)
        cpu->tried_early = 0;
    else if (cpu->tried_early < LOOK_AGAIN_OBJECTS) /* at least `most` of any cache */
        cpu->tried_early++;
    if (tried == GP_OVER)
        return 0;
    if (tried == GP_REFUSED)
        return TRY_AGAIN_AFTER;
    most = (LOOK_AGAIN_OBJECTS - 1) / cache->body->batch;
    least = (max_size(LOOK_AGAIN_BYTES / cache->body->stride, 1) - 1) / cache->body->batch;
    return narrow(uint16_t, tried == GP_OTHERS ? most : min_size(least + cpu->tried_early, most));
}

/*
 * Tries to end the grace period of the closed batches without a system call (gp_try). Then few
 * objects are in flight, and stay in the CPU's memory caches. Skips rings without room for full
 * batches, which will still grow, and less than a full batch, because so few objects would soon be
 * missed again. Pauses after a refusal, so hopeless tries cost nothing. Returns whether all closed
 * batches are safe; some may be in any case.
 */
bool latent_cache_end_at_once(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    gp_cookie cookie;
    enum gp_tried tried;

    if (!GP_CALLERS_DRIVE || cpu->size < 2 * cache->body->batch ||
        latent_cache_count(cpu) < cache->body->batch || !latent_cache_newest_cookie(cpu, &cookie))
        return false;
    if (cpu->not_at_once) {
        cpu->not_at_once--;
        return false;
    }
    tried = gp_try(cache->domain, cookie, cpu->line.cpu);
    cpu->not_at_once = batches_to_skip(cache, cpu, tried);
    if (tried >= GP_ASKED)
        limit_due_clear(cpu->line.cpu);
    return tried == GP_OVER;
}

/* Returns whether the open batch is complete, or the ring is at the limit. */
bool latent_cache_is_full(const struct prudence_cache *cache, const struct cpu_cache *cpu)
{
    uint64_t tail = load_relaxed(&cpu->line.ring_tail);

    return tail - cpu->closed >= batch_of(cache, cpu) ||
           tail - load_relaxed(&cpu->line.ring_head) >= cpu->size;
}

/* Returns whether the object is the newest one in the ring, and so is deferred twice. */
bool latent_cache_is_newest(const struct cpu_cache *cpu, const void *object)
{
    uint64_t newest = load_relaxed(&cpu->line.ring_tail) - 1;

    return latent_cache_count(cpu) && cpu->line.ring[newest & cpu->line.ring_mask] == object;
}

/* Appends on the slow path, also when the batch could not be closed. The caller has reserved the
 * room. Returns false if the ring is at the limit. */
bool latent_cache_append(struct prudence_cache *cache, struct cpu_cache *cpu, void *object)
{
    uint64_t tail = load_relaxed(&cpu->line.ring_tail);

    if (tail - load_relaxed(&cpu->line.ring_head) >= cpu->size)
        return false;
    /* Every first append of a ring comes here, because nothing was reserved before. */
    if (unlikely(!tail))
        budget_ring_begins(cache, cpu);
    cpu->line.ring[tail & cpu->line.ring_mask] = object;
    store_relaxed(&cpu->line.ring_tail, tail + 1);
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
    return true;
}

bool latent_cache_oldest_is_safe(const struct prudence_cache *cache, struct cpu_cache *cpu)
{
    const struct batch *batch = oldest_batch(cpu);

    return batch && gp_poll(cache->domain, batch->cookie);
}

/* Stores the cookie after which all closed batches are safe. Returns false if there are none. */
bool latent_cache_newest_cookie(const struct cpu_cache *cpu, gp_cookie *cookie)
{
    if (!latent_cache_waits(cpu))
        return false;
    *cookie = batches_of(cpu)[(cpu->batch_tail - 1) & cpu->batch_mask].cookie;
    return true;
}

/* Copies ring slots from `head` on, in at most two runs. */
static void ring_copy(const struct cpu_cache *cpu, uint64_t head, void **objects, unsigned count)
{
    unsigned start = (unsigned)(head & cpu->line.ring_mask);
    unsigned run = (unsigned)min_size(count, cpu->line.ring_mask + 1 - start);

    os_copy_pointers(objects, cpu->line.ring + start, run);
    os_copy_pointers(objects + run, cpu->line.ring, count - run);
}

/* Clears slots in caches with extensions, because leak checkers search for pointers. */
static void ring_forget(const struct cpu_cache *cpu, uint64_t head, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        cpu->line.ring[(head + i) & cpu->line.ring_mask] = NULL;
}

static void all_are_safe(void **objects, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct slab *slab = slab_known(objects[i]);

        if (likely(slab != NULL))
            extensions_merged(slab, objects[i]);
    }
}

/* Takes up to `count` of the oldest objects from closed batches, safe or not. They stay latent
 * under *cookie, the newest cookie of these batches. Returns their number. */
unsigned latent_cache_take_oldest(struct prudence_cache *cache, struct cpu_cache *cpu,
                                  void **objects, unsigned count, gp_cookie *cookie)
{
    unsigned taken = 0;
    const struct batch *batch;

    while (taken < count && (batch = oldest_batch(cpu))) {
        uint64_t head = load_relaxed(&cpu->line.ring_head);
        unsigned run = (unsigned)min_size(count - taken, batch->end - head);

        ring_copy(cpu, head, objects + taken, run);
        if (unlikely(cache->flags & CACHE_DESTRUCTED))
            reuse_upcalls.to_slabs(cache, objects + taken, run);
        if (unlikely(load_relaxed(&cache->slab_extensions)))
            ring_forget(cpu, head, run);
        store_release(&cpu->line.ring_head, head + run);
        *cookie = batch->cookie;
        taken += run;
    }
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
    return taken;
}

/* Notifies extensions about objects that are about to leave the ring. `reuse` has them, if they do
 * not go to slabs. The head moves afterwards, by a release store: a thread that finds an object no
 * longer in the ring finds it counted (destruct_barrier.c). */
static void tell_extensions(struct prudence_cache *cache, void **objects, unsigned count,
                            struct reuse *reuse)
{
    if (reuse) {
        reuse->count = count;
        reuse_upcalls.to_reuse(reuse);
        return;
    }
    if (cache->flags & CACHE_DESTRUCTED)
        reuse_upcalls.to_slabs(cache, objects, count);
    all_are_safe(objects, count);
}

/* Does the work of latent_cache_take_safe() without releasing bytes in the account. */
static unsigned take_safe(struct prudence_cache *cache, struct cpu_cache *cpu, void **objects,
                          unsigned count, struct reuse *reuse)
{
    struct batch *batch = oldest_batch(cpu);
    uint64_t head = load_relaxed(&cpu->line.ring_head);

    if (!batch || !gp_poll(cache->domain, batch->cookie))
        return 0;
    count = (unsigned)min_size(count, batch->end - head);
    ring_copy(cpu, head, objects, count);
    if (unlikely(load_relaxed(&cache->slab_extensions))) {
        tell_extensions(cache, objects, count, reuse);
        ring_forget(cpu, head, count);
    }
    store_release(&cpu->line.ring_head, head + count);
    latent_cache_set_stop(cpu, batch_of(cache, cpu));
    count_add(&cpu->counts.merges, 1);
    os_event_until(merge, cache, count, batch->cookie);
    count_add(&cpu->counts.merged_objects, count);
    return count;
}

/* Takes up to `count` objects of the oldest batch if it is safe, and releases their bytes. */
unsigned latent_cache_take_safe(struct prudence_cache *cache, struct cpu_cache *cpu, void **objects,
                                unsigned count)
{
    count = take_safe(cache, cpu, objects, count, NULL);
    if (count)
        limit_release(cpu->line.cpu, count * cache->body->stride);
    return count;
}

/*
 * Passes the bytes of merged objects on to the ring's reservation, as far as the share allows, and
 * releases the rest. So a miss in steady state leaves the account alone. Keeps nothing above the
 * limit, where nothing could be reserved either, nor for a ring without a reservation, which other
 * rings took or which never needed one.
 */
static void latent_cache_pass_on(struct prudence_cache *cache, struct cpu_cache *cpu,
                                 unsigned merged)
{
    unsigned ahead = (unsigned)(cpu->reserved - load_relaxed(&cpu->line.ring_tail)), kept = 0;

    if (cpu->ahead && limit_fits(0, false)) {
        unsigned share =
            limit_ahead_share(cpu->line.cpu, cache->body->stride, cpu->ahead, batch_of(cache, cpu));

        kept = share > ahead ? (unsigned)min_size(merged, share - ahead) : 0;
    }
    if (kept)
        set_ahead(cache, cpu, ahead + kept);
    if (merged > kept)
        limit_release(cpu->line.cpu, (merged - kept) * cache->body->stride);
}

/* Merges the oldest batch into the object cache, if it is safe, as far as it fits. Merges at most
 * one batch and MERGE_MAX objects, so that the caches are not owned for long. Returns the number of
 * objects. */
unsigned latent_cache_merge(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    unsigned have = stack_count(&cpu->line);
    unsigned room = cpu->size > have ? cpu->size - have : 0;
    unsigned merged;

    if (!cpu->slots || !room || unlikely(cache->flags & CACHE_DESTRUCTED))
        return 0; /* nothing pending is on a stack */
    merged =
        take_safe(cache, cpu, cpu->line.stack + have, (unsigned)min_size(room, MERGE_MAX), NULL);
    if (merged) {
        latent_cache_pass_on(cache, cpu, merged);
        cpu->unmerged_refills = 0;
    }
    store_relaxed(&cpu->line.stack_word, load_relaxed(&cpu->line.stack_word) + merged);
    count_add(&cpu->counts.stacked, merged);
    return merged;
}

/* Takes objects of the oldest batch for reuse, if it is safe. Returns their number. */
unsigned latent_cache_reuse(struct prudence_cache *cache, struct cpu_cache *cpu,
                            struct reuse *reuse)
{
    unsigned room = (unsigned)min_size(cpu->size, REUSE_MAX); /* the stack is empty */
    unsigned taken = take_safe(cache, cpu, reuse->objects, room, reuse);

    if (taken) {
        latent_cache_pass_on(cache, cpu, taken);
        cpu->unmerged_refills = 0;
    }
    return taken;
}
