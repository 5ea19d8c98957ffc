/* SPDX-License-Identifier: MIT */
/*
 * Clocks of programs, and the handles by which programs name them (places.h).
 *
 * Only a clock's thread writes `thread` and `handle`, so another thread that reads them never finds
 * that the clock is its own.
 *
 * Unused places are in a list under scm_lock. The lists of clocks belong to their threads.
 */
#include "shortterm/scm.h"

_Static_assert(sizeof(struct scm_clock *) == sizeof(uint64_t), "a handle looks like a pointer");

static struct places clock_places = {.size = sizeof(struct scm_clock)};
static struct list unused = {&unused, &unused}; /* unused places; scm_lock */

/* Under scm_lock. */
static struct scm_clock *clock_place_new(void)
{
    uint32_t number;
    struct scm_clock *clock = places_new(&clock_places, &number);

    if (!clock)
        return NULL;
    store_relaxed(&clock->turn_and_place, handle_of(0, number));
    list_init(&clock->link);
    return clock;
}

/* Under scm_lock. */
static struct scm_clock *place_take(void)
{
    struct scm_clock *clock = list_first(&unused, struct scm_clock, link);

    if (!clock)
        return clock_place_new();
    list_remove(&clock->link);
    return clock;
}

/* Under scm_lock. */
static void place_give_back(struct scm_clock *clock)
{
    if (handle_turn(clock->turn_and_place) < UINT32_MAX)
        list_append(&unused, &clock->link);
}

/* Makes a clock of the thread. Returns NULL if there is no memory. */
struct scm_clock *clock_make(struct scm_thread *thread, enum clock_kind kind)
{
    struct scm_clock *clock;

    os_lock_take(&scm_lock);
    clock = place_take();
    if (clock && !clock_init(clock)) {
        place_give_back(clock);
        clock = NULL;
    }
    os_lock_release(&scm_lock);
    if (!clock)
        return NULL;
    clock->kind = kind;
    clock->dates = clock->behind = 0;
    store_relaxed(&clock->turn_and_place, clock->turn_and_place + handle_of(1, 0));
    store_relaxed(&clock->thread, thread);
    store_relaxed(&clock->handle, clock->turn_and_place);
    list_append(kind == REAL_TIME_CLOCK ? &thread->real : &thread->clocks, &clock->link);
    return clock;
}

/* Retires a clock, so that the handle is refused. The clock is kept while it has dates. */
void clock_retire(struct scm_clock *clock)
{
    store_relaxed(&clock->handle, (uint64_t)0);
    store_relaxed(&clock->thread, (struct scm_thread *)NULL);
    list_remove(&clock->link);
}

/* Frees a clock that was retired and has no dates. */
void clock_unmake_locked(struct scm_clock *clock)
{
    list_remove(&clock->link);
    clock_release(clock);
    place_give_back(clock);
}

void clock_unmake(struct scm_clock *clock)
{
    os_lock_take(&scm_lock);
    clock_unmake_locked(clock);
    os_lock_release(&scm_lock);
}

/* Returns the clock of a handle, or NULL if there is none now. Sets *was if there was one. */
struct scm_clock *clock_of_handle(struct scm_clock *handle, bool *was)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    struct scm_clock *clock = places_at(&clock_places, (uint32_t)value, sizeof *clock);

    if (!clock)
        return NULL;
    if (likely(load_relaxed(&clock->handle) == value))
        return clock;
    *was = handle_turn(value) &&
           handle_turn(value) <= handle_turn(load_relaxed(&clock->turn_and_place));
    return NULL;
}
