/* SPDX-License-Identifier: MIT */
/*
 * Clocks that programs make, and what programs call them.
 *
 * A program does not get a clock's address but a handle: the number of the clock's place in a table, and
 * in the upper half how often that place was used. So each handle is given out once, and one that was
 * kept beyond its clock's end is refused, whatever became of the place meanwhile. A place that was used
 * 2^32 times is not used again.
 *
 * The table grows by blocks, each twice as large as the one before, that are never freed. So other
 * threads may look at any place at any time; they see that the clock is not theirs, since its `thread`
 * and `handle` are written by its thread alone: nobody else ever reads there that it is his.
 *
 * Places that are free are in a list under scm_lock. The thread's lists of clocks are its own.
 */
#include "scm/scm.h"

#define FIRST_BLOCK 16
#define BLOCKS      29

_Static_assert(sizeof(struct scm_clock *) == sizeof(uint64_t), "a handle looks like a pointer");

static struct scm_clock *blocks[BLOCKS];        /* made under scm_lock, read by anybody */
static uint32_t used;                           /* places ever given out; scm_lock */
static struct list unused = {&unused, &unused}; /* of them; scm_lock */

static unsigned block_of(uint32_t place)
{
    return 31 - (unsigned)__builtin_clz(place / FIRST_BLOCK + 1);
}

static uint64_t block_size(unsigned block)
{
    return (uint64_t)FIRST_BLOCK << block;
}

/* The place in that block. */
static uint64_t within(uint32_t place, unsigned block)
{
    return place - FIRST_BLOCK * ((UINT64_C(1) << block) - 1);
}

static uint64_t handle_of(uint64_t turn, uint32_t place)
{
    return turn << 32 | place;
}

/* Under scm_lock. */
static struct scm_clock *place_new(void)
{
    unsigned block = block_of(used);
    struct scm_clock *clocks = blocks[block], *clock;

    if (!clocks)
        clocks = scm_meta_alloc(block_size(block) * sizeof *clocks);
    if (!clocks || used == UINT32_MAX)
        return NULL;
    store_release(&blocks[block], clocks); /* so that its zeros are seen before it is */
    clock = &clocks[within(used, block)];
    store_relaxed(&clock->turn_and_place, handle_of(0, used));
    list_init(&clock->link);
    used++;
    return clock;
}

/* Under scm_lock. */
static struct scm_clock *place_take(void)
{
    struct scm_clock *clock = list_first(&unused, struct scm_clock, link);

    if (!clock)
        return place_new();
    list_remove(&clock->link);
    return clock;
}

/* Under scm_lock. */
static void place_give_back(struct scm_clock *clock)
{
    if (clock->turn_and_place >> 32 < UINT32_MAX)
        list_add_tail(&unused, &clock->link);
}

/* NULL: there is no memory. */
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
    list_add_tail(kind == REAL_TIME_CLOCK ? &thread->real : &thread->clocks, &clock->link);
    return clock;
}

/* From now on its handle is refused. It stays as it is for as long as it has dates. */
void clock_retire(struct scm_clock *clock)
{
    store_relaxed(&clock->handle, (uint64_t)0);
    store_relaxed(&clock->thread, (struct scm_thread *)NULL);
    list_remove(&clock->link);
}

/* A clock that was retired, and has no dates. */
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

/* NULL: there is no such clock now. `was`: there was. */
struct scm_clock *clock_of_handle(struct scm_clock *handle, bool *was)
{
    uint64_t value = (uint64_t)(uintptr_t)handle;
    uint32_t place = (uint32_t)value;
    unsigned block = block_of(place);
    struct scm_clock *clocks = load_acquire(&blocks[block]), *clock;

    if (!clocks)
        return NULL;
    clock = &clocks[within(place, block)];
    if (likely(load_relaxed(&clock->handle) == value))
        return clock;
    *was = value >> 32 && value >> 32 <= load_relaxed(&clock->turn_and_place) >> 32;
    return NULL;
}
