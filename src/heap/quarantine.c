/* SPDX-License-Identifier: MIT */
/*
 * Quarantine. A freed object rests until so many bytes were freed after it that together they are
 * more than the limit: one queue of the process, in the order of frees. It stands in chunks of
 * metadata apart from the objects, which are not touched.
 *
 * To the slab layer the objects in it are allocated still, so they keep their slabs. One lock for
 * the queue; objects leave outside of it.
 */
#include "heap/quarantine.h"

#define CHUNK_BYTES   ((size_t)4096)
#define CHUNK_OBJECTS ((CHUNK_BYTES - 2 * sizeof(void *)) / sizeof(void *))
#define LEAVE_MAX     64 /* objects that leave in one go */

struct chunk {
    struct chunk *next; /* younger */
    uint32_t first, end;
    void *objects[CHUNK_OBJECTS];
};
_Static_assert(sizeof(struct chunk) == CHUNK_BYTES, "no byte is lost");

uint64_t quarantine_limit;

static struct os_lock lock = OS_LOCK_INIT(OS_RANK_WATCH);
static struct chunk *oldest, *youngest;
static uint64_t bytes;

/* Room for one more object behind the youngest; NULL without memory. */
static struct chunk *chunk_with_room(void)
{
    struct chunk *chunk = youngest;

    if (chunk && chunk->end < CHUNK_OBJECTS)
        return chunk;
    chunk = os_meta_alloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    if (youngest)
        youngest->next = chunk;
    else
        oldest = chunk;
    youngest = chunk;
    return chunk;
}

static void *take_oldest(void)
{
    struct chunk *chunk = oldest;
    void *object = chunk->objects[chunk->first++];

    if (chunk->first == chunk->end) {
        oldest = chunk->next;
        if (!oldest)
            youngest = NULL;
        os_meta_free(chunk, sizeof *chunk);
    }
    bytes -= slab_object_bytes(slab_known(object));
    return object;
}

static unsigned take_down_to(uint64_t limit, void **objects)
{
    unsigned taken = 0;

    while (bytes > limit && taken < LEAVE_MAX)
        objects[taken++] = take_oldest();
    return taken;
}

static void leave_all(void **objects, unsigned count,
                      void (*leave)(struct slab *slab, void *object))
{
    for (unsigned i = 0; i < count; i++)
        leave(slab_known(objects[i]), objects[i]);
}

/* Until no more than `limit` bytes rest. */
static void shrink_to(uint64_t limit, void (*leave)(struct slab *slab, void *object))
{
    void *objects[LEAVE_MAX];
    unsigned taken;

    do {
        os_lock_take(&lock);
        taken = take_down_to(limit, objects);
        os_lock_release(&lock);
        leave_all(objects, taken, leave);
    } while (taken);
}

bool quarantine_put(struct slab *slab, void *object, void (*leave)(struct slab *slab, void *object))
{
    size_t size = slab_object_bytes(slab);
    struct chunk *chunk;
    bool over;

    if (size > quarantine_limit)
        return false;
    os_lock_take(&lock);
    chunk = chunk_with_room();
    if (chunk) {
        chunk->objects[chunk->end++] = object;
        bytes += size;
    }
    over = bytes > quarantine_limit;
    os_lock_release(&lock);
    if (over)
        shrink_to(quarantine_limit, leave);
    return chunk != NULL;
}

void quarantine_flush(void (*leave)(struct slab *slab, void *object))
{
    shrink_to(0, leave);
}

void quarantine_fork_prepare(void)
{
    os_lock_take_for_fork(&lock);
}

void quarantine_fork_done(void)
{
    os_lock_release_from_fork(&lock);
}
