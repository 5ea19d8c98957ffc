/* SPDX-License-Identifier: MIT */
/* Places of regions, behind their handles. Unused places are in a common list, and each thread
 * keeps a few, so that threads seldom take the lock. */
#include "shortterm/regions.h"

#define PLACES_AT_ONCE 8 /* places a thread takes from the common list or returns */

struct places region_places = {.size = sizeof(struct region)};
static struct list unused_places = {&unused_places, &unused_places}; /* scm_lock */

/* Under scm_lock. */
static struct region *region_place_new(void)
{
    uint32_t number;
    struct region *region = places_new(&region_places, &number);

    if (region)
        store_relaxed(&region->handle, handle_of(0, number));
    return region;
}

static void place_keep(struct scm_thread *self, struct region *region)
{
    list_add_head(&self->region_places, &region->link);
    self->region_place_count++;
}

static struct region *place_kept(struct scm_thread *self)
{
    struct region *region = list_first(&self->region_places, struct region, link);

    if (!region)
        return NULL;
    list_remove(&region->link);
    self->region_place_count--;
    return region;
}

static void places_take_some(struct scm_thread *self)
{
    os_lock_take(&scm_lock);
    for (unsigned i = 0; i < PLACES_AT_ONCE; i++) {
        struct region *region = list_first(&unused_places, struct region, link);

        if (region)
            list_remove(&region->link);
        else if (!i)
            region = region_place_new();
        if (!region)
            break;
        place_keep(self, region);
    }
    os_lock_release(&scm_lock);
}

/* Under scm_lock. */
static void places_leave(struct scm_thread *thread, unsigned count)
{
    while (count--)
        list_append(&unused_places, &place_kept(thread)->link);
}

/* Returns the places of a thread that has ended. Called under scm_lock. */
void region_places_leave(struct scm_thread *thread)
{
    places_leave(thread, thread->region_place_count);
}

struct region *region_place_take(struct scm_thread *self)
{
    if (list_is_empty(&self->region_places))
        places_take_some(self);
    return place_kept(self);
}

void region_place_give_back(struct scm_thread *self, struct region *region)
{
    if (handle_turn(region->handle) == UINT32_MAX)
        return;
    place_keep(self, region);
    if (self->region_place_count < 3 * PLACES_AT_ONCE)
        return;
    os_lock_take(&scm_lock);
    places_leave(self, PLACES_AT_ONCE);
    os_lock_release(&scm_lock);
}
