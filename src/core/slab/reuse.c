/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reuse: objects of caches with CACHE_DESTRUCTED, which an extension makes fit for their next use
 * by a function of the program. So such objects are never merged into an object cache. The thread
 * whose object cache is empty takes safe objects of the ring, or free ones of slabs, makes them fit
 * while it owns and carries nothing, then puts them on its stack. Whatever is on a stack is fit.
 *
 * In between the extension knows where the objects are. A slab counts them as live.
 */
#include "slab/reuse.h"

#include "os/os.h"
#include "slab/node.h"
#include "slab/object_cache.h"

uint32_t reuse_watched[2];

/* Puts the objects on the stack of this CPU, as a merge does, and pops one. The rest, or all if
 * another thread owns the caches, goes to the slabs. */
static void *push_and_pop(struct reuse *reuse)
{
    unsigned put = 0;
    void *object = NULL;
    struct cpu_cache *cpu = cpu_cache_take(reuse->cache, &put);

    if (cpu) {
        put = object_cache_push(cpu, reuse->objects, reuse->count);
        count_add(&cpu->counts.stacked, put);
        object = object_cache_pop(cpu);
        count_add(&cpu->counts.hits_after_merge, object != NULL);
        cpu_cache_release(cpu);
    }
    if (put < reuse->count)
        node_put_selected(reuse->cache, reuse->objects + put, reuse->count - put);
    return object;
}

/* Makes objects from a ring fit. Returns one; the others go to the object cache. The caller carries
 * them. Returns NULL if another thread owns the caches. */
void *reuse_finish(struct reuse *reuse)
{
    void *object;

    reuse->fit = 0;
    reuse_upcalls.make_fit(reuse);
    object = push_and_pop(reuse);
    os_in_flight_end();
    return object;
}
