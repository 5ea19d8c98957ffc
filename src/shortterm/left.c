/* SPDX-License-Identifier: MIT */
/*
 * Takes over the rings of threads that have ended. No call walks a ring at once; later calls empty
 * it list by list.
 *
 *   - left: a clock of a thread that has ended, kept by that thread's heir. It advances with the
 *     heir's local clock. Its lists are moved to that clock, earliest first, before their date
 *     comes, if the heir ticks often enough. A list that is late expires when it is found.
 *   - orphan: a thread that has ended and has no heir. Every tick of any thread takes over lists of
 *     one orphan: a local tick one of the local clock and one of a left clock, a global tick one of
 *     the global clock. An orphan's time stands still, so a list keeps the remaining units that it
 * had
 *     when the thread ended.
 *
 * Orphans have their turn in two queues, one for each kind of tick. Only ticks of that kind move
 * the front. With one queue for both, a thread whose ticks alternate would take local lists of
 * every second orphan and global lists of the others, and never the rest. An orphan leaves a queue
 * when it has nothing more for such ticks, so the first one always has something.
 *
 * A list that moves may expire later than it would have, but never earlier. If there is no memory
 * for a longer ring, the list stays.
 *
 * Orphans belong to the holder of scm_lock. A tick only tries the lock, because a thread that holds
 * it does the work.
 */
#include "shortterm/scm.h"

#define LISTS_AT_ONCE 8 /* moved when a thread comes or goes */

uint32_t scm_left;

/* Orphans that have something for local ticks, and for global ones; scm_lock. */
static struct list turns[] = {[LOCAL_CLOCK] = {&turns[LOCAL_CLOCK], &turns[LOCAL_CLOCK]},
                              [GLOBAL_CLOCK] = {&turns[GLOBAL_CLOCK], &turns[GLOBAL_CLOCK]}};

/* Updates scm_left. Called under scm_lock after orphans, threads in their destructors, or real-time
 * clocks of ended threads came or went. */
void left_note(void)
{
    bool ticks = !list_is_empty(&scm_orphans) || real_time_left();

    store_relaxed(&scm_left, (ticks ? LEFT_FOR_TICKS : 0) |
                                 (real_time_merges() ? LEFT_FOR_MERGES : 0) |
                                 (scm_ending ? LEFT_BY_ENDING : 0));
}

/* ---------------------------------------------------------------------------------------- left */

/* Retires the clocks of a thread that ends or stops taking part. Called under scm_lock. */
void left_retire_clocks(struct scm_thread *thread)
{
    while (!list_is_empty(&thread->real))
        real_time_leave(list_first(&thread->real, struct scm_clock, link));
    while (!list_is_empty(&thread->clocks)) {
        struct scm_clock *clock = list_first(&thread->clocks, struct scm_clock, link);

        clock_retire(clock);
        clock->local_then = thread->local.now;
        if (clock_is_empty(clock))
            clock_unmake_locked(clock);
        else
            list_append(&thread->left, &clock->link);
    }
    thread_state_watch(thread);
}

/*
 * Moves the earliest list of a clock to another one, keeping the units that remain from `now` on.
 * Returns false if the clock is empty or there is no memory.
 */
static bool move_earliest(struct scm_thread *self, struct scm_clock *clock, uint64_t now,
                          struct scm_clock *to)
{
    uint64_t place = clock_first(clock, clock->now), units;

    if (place > clock->mask)
        return false;
    units = clock->ring[place].first->date - now;
    if ((int64_t)units < 0)
        clock_expire(self, clock, place);
    else if (!clock_reach(to, units))
        return false;
    else
        clock_give(self, clock, place, to, to->now + units);
    count_add(&self->counts.steps, 1);
    return true;
}

/* Returns the time that it would be on a left clock. */
static uint64_t left_now(const struct scm_thread *thread, const struct scm_clock *clock)
{
    return clock->now + (thread->local.now - clock->local_then);
}

/* Moves a list of the first left clock of `thread`, which is this one or an orphan, to this
 * thread's local clock. Each clock has a turn. Returns false if there is none or no memory. */
static bool move_left(struct scm_thread *self, struct scm_thread *thread, bool *empty)
{
    struct scm_clock *clock = list_first(&thread->left, struct scm_clock, link);
    bool moved;

    if (!clock)
        return false;
    moved = move_earliest(self, clock, left_now(thread, clock), &self->local);
    list_remove(&clock->link);
    *empty = clock_is_empty(clock);
    list_append(&thread->left, &clock->link);
    return moved || *empty;
}

static struct scm_clock *last_left(struct scm_thread *thread)
{
    return list_entry(thread->left.previous, struct scm_clock, link);
}

bool left_step(struct scm_thread *self)
{
    bool empty = false, moved = move_left(self, self, &empty);

    if (empty)
        clock_unmake(last_left(self));
    if (list_is_empty(&self->left))
        thread_state_watch(self);
    return moved;
}

/* Called before the thread may make a list, so that lists do not become more, whichever thread
 * ticks. */
void left_step_if_any(struct scm_thread *self)
{
    if (!list_is_empty(&self->left))
        left_step(self);
}

void left_steps(struct scm_thread *self)
{
    for (unsigned i = 0; i < LISTS_AT_ONCE && left_step(self); i++)
        ;
}

/* ------------------------------------------------------------------------------------- orphans */

/* Returns whether the orphan has something for ticks of `kind`. Expired descriptors are for the
 * first tick of either kind. Ended clocks imply expired descriptors (ended.c). */
static bool has_for(const struct scm_thread *orphan, enum clock_kind kind)
{
    if (orphan->expired.last || !list_is_empty(&orphan->ended_regions))
        return true;
    if (kind == GLOBAL_CLOCK)
        return !clock_is_empty(&orphan->global);
    return !clock_is_empty(&orphan->local) || !list_is_empty(&orphan->left);
}

/* Puts the orphan into the queues of those ticks for which it has something, keeping the turn it
 * has there. Frees an orphan that has nothing at all. Called under scm_lock. */
void left_keep_or_free(struct scm_thread *orphan)
{
    bool keep = false;

    for (unsigned kind = LOCAL_CLOCK; kind <= GLOBAL_CLOCK; kind++) {
        if (!has_for(orphan, kind)) {
            list_remove(&orphan->turns[kind]);
            continue;
        }
        if (list_is_empty(&orphan->turns[kind]))
            list_append(&turns[kind], &orphan->turns[kind]);
        keep = true;
    }
    if (keep)
        return;
    list_remove(&orphan->link);
    thread_state_free(orphan);
}

/* Takes the oldest orphan for a new thread. Returns NULL if there is none. Called under
 * scm_lock. */
struct scm_thread *left_take_orphan(void)
{
    struct scm_thread *orphan = list_first(&scm_orphans, struct scm_thread, link);

    if (!orphan)
        return NULL;
    list_remove(&orphan->link);
    for (unsigned kind = LOCAL_CLOCK; kind <= GLOBAL_CLOCK; kind++)
        list_remove(&orphan->turns[kind]);
    return orphan;
}

/* Removes the taken descriptors from the first page, so that the page can be on any list. */
static void first_page_begins_at_0(struct scm_thread *orphan)
{
    struct page *page = orphan->expired.first;

    for (uint64_t i = orphan->begin; i < page->count; i++)
        page->descriptors[i - orphan->begin] = page->descriptors[i];
    page->count -= narrow(uint32_t, orphan->begin);
    orphan->counts.taken += orphan->begin;
    orphan->begin = 0;
}

/* Takes all expired descriptors, in constant time. After that the orphan no longer has all
 * descriptors of its clocks' owners, so only the pages refer to stamps of these. */
static void take_expired(struct scm_thread *self, struct scm_thread *orphan)
{
    owner_begin_clock_life(&orphan->local);
    owner_begin_clock_life(&orphan->global);
    if (orphan->expired.last) {
        first_page_begins_at_0(orphan);
        list_expires(self, &orphan->expired);
    }
    /* Ended clocks feed the expired queue when it is used up (ended.c). */
    list_join(&self->ended, &orphan->ended);
    if (!list_is_empty(&orphan->ended_regions)) {
        list_join(&self->ended_regions, &orphan->ended_regions);
        thread_state_watch(self);
    }
}

/* Takes a list of the orphan's global clock, or one of the local clock and one of a left clock. */
static void take_list(struct scm_thread *self, struct scm_thread *orphan, enum clock_kind kind)
{
    bool empty = false;

    if (kind == GLOBAL_CLOCK) {
        move_earliest(self, &orphan->global, orphan->global.now, &self->global);
        return;
    }
    move_earliest(self, &orphan->local, orphan->local.now, &self->local);
    move_left(self, orphan, &empty);
    if (empty)
        clock_unmake_locked(last_left(orphan));
}

static void left_take_from(struct scm_thread *self, struct scm_thread *orphan, enum clock_kind kind)
{
    take_expired(self, orphan);
    take_list(self, orphan, kind);
    list_remove(&orphan->turns[kind]);
    left_keep_or_free(orphan);
}

/* Takes over a little from ended threads, for a tick of that kind. */
void left_take(struct scm_thread *self, enum clock_kind kind)
{
    if (!load_relaxed(&scm_left) || !os_lock_try(&scm_lock))
        return;
    if (!list_is_empty(&turns[kind]))
        left_take_from(self, list_entry(turns[kind].next, struct scm_thread, turns[kind]), kind);
    real_time_left_step(self, false);
    left_note();
    os_lock_release(&scm_lock);
}

/* Does a step as left_step_if_any, for clocks that wait to be merged by real time. */
void left_merge_real_time(struct scm_thread *self)
{
    if (!(load_relaxed(&scm_left) & LEFT_FOR_MERGES) || !os_lock_try(&scm_lock))
        return;
    real_time_left_step(self, false);
    left_note();
    os_lock_release(&scm_lock);
}

/* Takes everything that has expired from all ended threads. */
void left_take_expired(struct scm_thread *self)
{
    struct list *item, *following;

    if (!load_relaxed(&scm_left))
        return;
    os_lock_take(&scm_lock);
    list_for_each_safe(item, following, &scm_orphans)
    {
        struct scm_thread *orphan = list_entry(item, struct scm_thread, link);

        take_expired(self, orphan);
        left_keep_or_free(orphan);
    }
    real_time_left_step(self, true);
    left_note();
    os_lock_release(&scm_lock);
}
