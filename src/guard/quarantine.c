/* SPDX-License-Identifier: MIT */
/*
 * Quarantine. A freed object rests until its bytes and those freed after it exceed the limit. The
 * process has one queue, in the order of frees. The queue lies in chunks of metadata away from the
 * objects, which are not touched.
 *
 * For the slab layer, resting objects are still allocated, so they keep their slabs. One lock
 * guards the queue; objects leave outside the lock. While they leave, they are held by a thread
 * that may know nothing of their cache: it freed another object, or trims. Such a thread is a
 * leaver, and listed, so that a thread that destroys a cache can wait: until then the cache's
 * objects seem live, and the leaver may still use the cache's nodes.
 */
#include "guard/quarantine.h"

#include "fork_part.h"
#include "guard/instruments.h"
#include "slab/gate.h"
#include "slab/slab.h"

#define CHUNK_BYTES   ((size_t)4096)
#define CHUNK_OBJECTS ((CHUNK_BYTES - 2 * sizeof(void *)) / sizeof(void *))
#define LEAVE_MAX     64    /* objects that leave in one batch */
#define LEAVER_NS     20000 /* pause between checks of other leavers */

struct resting_chunk {
    struct resting_chunk *next; /* next younger chunk */
    uint32_t first, end;
    void *objects[CHUNK_OBJECTS];
};
_Static_assert(sizeof(struct resting_chunk) == CHUNK_BYTES, "no byte is lost");

static struct os_lock quarantine_lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static struct resting_chunk *oldest_chunk, *youngest;
static uint64_t quarantined_bytes;
static uint64_t entered, left; /* objects, since the start */

struct quarantine_leaver {
    struct list link;
    uint64_t first; /* number of the first object, as `left` counts */
};
static struct list leavers = {&leavers, &leavers}; /* ordered by `first`; under the lock */

/* Returns a chunk with room for one more object after the youngest, or NULL without memory. */
static struct resting_chunk *chunk_with_room(void)
{
    struct resting_chunk *chunk = youngest;

    if (chunk && chunk->end < CHUNK_OBJECTS)
        return chunk;
    chunk = os_meta_alloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    if (youngest)
        youngest->next = chunk;
    else
        oldest_chunk = chunk;
    youngest = chunk;
    return chunk;
}

static void *quarantine_take_oldest(void)
{
    struct resting_chunk *chunk = oldest_chunk;
    void *object = chunk->objects[chunk->first++];

    if (chunk->first == chunk->end) {
        oldest_chunk = chunk->next;
        if (!oldest_chunk)
            youngest = NULL;
        os_meta_free(chunk, sizeof *chunk);
    }
    quarantined_bytes -= slab_object_bytes(slab_known(object));
    left++;
    return object;
}

/* Takes up to LEAVE_MAX of the oldest objects, until at most `limit` bytes rest and `goal` objects
 * have gone. */
static unsigned quarantine_take_some(uint64_t limit, uint64_t goal, void **objects,
                                     struct quarantine_leaver *leaver)
{
    unsigned taken = 0;

    os_lock_take(&quarantine_lock);
    leaver->first = left;
    while (oldest_chunk && (quarantined_bytes > limit || left < goal) && taken < LEAVE_MAX)
        objects[taken++] = quarantine_take_oldest();
    if (taken)
        list_append(&leavers, &leaver->link);
    os_lock_release(&quarantine_lock);
    return taken;
}

static void leaver_is_done(struct quarantine_leaver *leaver)
{
    os_lock_take(&quarantine_lock);
    list_remove(&leaver->link);
    os_lock_release(&quarantine_lock);
}

static void free_for_good(struct slab *slab, void *object)
{
    instruments_check_zero(slab, object);
    gate_put_kept(slab, object);
}

static void leave_all(void **objects, unsigned count,
                      void (*leave)(struct slab *slab, void *object))
{
    for (unsigned i = 0; i < count; i++)
        leave(slab_known(objects[i]), objects[i]);
}

static void let_leave(uint64_t limit, uint64_t goal, void (*leave)(struct slab *slab, void *object))
{
    void *objects[LEAVE_MAX];
    struct quarantine_leaver leaver;
    unsigned taken;

    do {
        os_in_flight_begin();
        taken = quarantine_take_some(limit, goal, objects, &leaver);
        if (taken) {
            leave_all(objects, taken, leave);
            leaver_is_done(&leaver);
        }
        os_in_flight_end();
    } while (taken);
}

/* Puts an object to rest. Returns false for a lone object, for one larger than the limit, and
 * without memory to note the object. */
static bool quarantine_released(struct slab *slab, void *object, bool may_keep)
{
    size_t size = slab_object_bytes(slab);
    struct resting_chunk *chunk;
    bool over;

    if (!may_keep || slab->alone || size > quarantine_limit)
        return false;
    os_lock_take(&quarantine_lock);
    chunk = chunk_with_room();
    if (chunk) {
        chunk->objects[chunk->end++] = object;
        quarantined_bytes += size;
        entered++;
    }
    over = quarantined_bytes > quarantine_limit;
    os_lock_release(&quarantine_lock);
    if (over)
        let_leave(quarantine_limit, 0, free_for_good);
    return chunk != NULL;
}

/* Lets the objects present now leave; other threads may bring more all the time. */
void quarantine_flush_to(void (*leave)(struct slab *slab, void *object))
{
    uint64_t goal;

    os_lock_take(&quarantine_lock);
    goal = entered;
    os_lock_release(&quarantine_lock);
    let_leave(UINT64_MAX, goal, leave);
}

COLD void quarantine_flush(void)
{
    if (quarantine_limit)
        quarantine_flush_to(free_for_good);
}

static void wait_for_leavers(void)
{
    uint64_t goal = 0;
    bool busy = true;

    for (bool first = true; busy; first = false) {
        const struct quarantine_leaver *oldest_one;

        if (!first)
            os_sleep_ns(LEAVER_NS);
        os_lock_take(&quarantine_lock);
        goal = first ? left : goal;
        oldest_one = list_first(&leavers, struct quarantine_leaver, link);
        busy = oldest_one && oldest_one->first < goal;
        os_lock_release(&quarantine_lock);
    }
}

/* Objects of all caches leave, because they rest in one queue. */
static void flush_of_cache(struct prudence_cache *cache)
{
    (void)cache;
    quarantine_flush();
}

static void quarantine_empty(struct prudence_cache *cache)
{
    (void)cache;
    quarantine_flush();
    wait_for_leavers();
}

COLD static enum extension_wish quarantine_wants(const struct cache_layout *layout)
{
    (void)layout;
    return extension_wanted_if(quarantine_limit > 0);
}

const struct slab_extension quarantine_extension = {.wants = quarantine_wants,
                                                    .flush = flush_of_cache,
                                                    .empty = quarantine_empty,
                                                    .released = quarantine_released,
                                                    .pressure = quarantine_flush};

/* Empties the list, which has entries only if fork took nothing. The leavers' threads, and the
 * objects that they held, are not in the child. */
static void quarantine_fork_child(bool whole)
{
    (void)whole;
    list_init(&leavers);
}

static void quarantine_fork_prepare(void)
{
    os_lock_take_for_fork(&quarantine_lock);
}

static void quarantine_fork_done(void)
{
    os_lock_release_from_fork(&quarantine_lock);
}

const struct fork_part quarantine_fork_part = {.order = FORK_QUARANTINE,
                                               .name = "quarantine",
                                               .prepare = quarantine_fork_prepare,
                                               .child = quarantine_fork_child,
                                               .done = quarantine_fork_done};
