/* SPDX-License-Identifier: MIT */
/*
 * Clocks: integers, and a ring of lists of descriptors. A date is not stored, it is the place in the
 * ring. Advancing moves one list to the thread's expired descriptors: constant time, whatever is on it.
 *
 * The ring has as many lists as the largest extension that was used needs (a power of two), so a
 * large option scm_max_extension costs nothing.
 */
#include "scm/scm.h"

#define LISTS_MIN 16

uint64_t (*scm_real_time)(void) = os_clock_ns;

bool clock_init(struct scm_clock *clock, struct scm_thread *thread, enum clock_kind kind)
{
    clock->thread = thread;
    clock->kind = kind;
    list_init(&clock->link);
    return clock_reach(clock, 0);
}

static size_t ring_bytes(uint64_t lists)
{
    return lists * sizeof(struct page_list);
}

void clock_release(struct scm_clock *clock)
{
    if (clock->ring)
        scm_meta_free(clock->ring, ring_bytes(clock->mask + 1));
}

/* Makes the ring so long that a date may be `extension` ahead. False: there is no memory. */
bool clock_reach(struct scm_clock *clock, uint64_t extension)
{
    uint64_t lists = max_size(LISTS_MIN, round_up_to_power_of_two(extension + 1));
    struct page_list *ring;

    if (clock->ring && extension <= clock->mask)
        return true;
    ring = scm_meta_alloc(ring_bytes(lists));
    if (!ring)
        return false;
    for (uint64_t date = clock->now; clock->ring && date <= clock->now + clock->mask; date++)
        ring[date & (lists - 1)] = clock->ring[date & clock->mask];
    clock_release(clock);
    clock->ring = ring;
    clock->mask = lists - 1;
    return true;
}

/* Of a clock's list: all pages but the last are full. */
static uint64_t dates_on(const struct page_list *list)
{
    return list->first ? (list->pages - 1) * PAGE_OBJECTS + list->last->count : 0;
}

/* One unit of time: what is dated `now` expires. */
void clock_advance(struct scm_clock *clock)
{
    struct page_list *list = &clock->ring[clock->now & clock->mask];
    struct scm_thread *thread = clock->thread;

    clock->now++;
    count_add(&thread->counts.expired, dates_on(list));
    page_lists_join(&thread->expired, list);
}

/* All of the ring, once, is as far as time can go: nothing is dated later. */
static void clock_advance_to(struct scm_clock *clock, uint64_t now)
{
    uint64_t steps = now - clock->now;

    for (uint64_t i = min_size(steps, clock->mask + 1); i; i--)
        clock_advance(clock);
    clock->now = now;
}

/* A real-time clock: to the unit that it is now. */
void clock_follow_time(struct scm_clock *clock)
{
    clock_advance_to(clock, (scm_real_time() - clock->began) / clock->period);
}

/* Time is over on this clock. */
void clock_end(struct scm_clock *clock)
{
    clock_advance_to(clock, clock->now + clock->mask + 1);
}

/* Its thread has ended, and the handle with it: it stays for as long as it has dates. */
void clock_adopt(struct scm_clock *clock)
{
    uint64_t over = clock->now + clock->mask + 1;

    while (over > clock->now && !clock->ring[(over - 1) & clock->mask].first)
        over--;
    clock->over = over;
    clock->adopted = true;
}

struct scm_clock *clock_make(struct scm_thread *thread, enum clock_kind kind, uint64_t period)
{
    struct scm_clock *clock = scm_meta_alloc(sizeof *clock);

    if (!clock || !clock_init(clock, thread, kind)) {
        if (clock)
            scm_meta_free(clock, sizeof *clock);
        return NULL;
    }
    clock->period = period;
    clock->began = kind == REAL_TIME_CLOCK ? scm_real_time() : 0;
    list_add_tail(&thread->clocks, &clock->link);
    return clock;
}

static void clock_unmake(struct scm_clock *clock)
{
    list_remove(&clock->link);
    clock_release(clock);
    scm_meta_free(clock, sizeof *clock);
}

/* The thread's further clocks that do not wait for a call of their own: real time, and those whose
 * thread has ended. `ticked`: the local clock was just advanced. */
void clocks_follow(struct scm_thread *thread, bool ticked)
{
    struct list *item = thread->clocks.next;

    while (item != &thread->clocks) {
        struct scm_clock *clock = list_entry(item, struct scm_clock, link);

        item = item->next;
        if (clock->kind == REAL_TIME_CLOCK)
            clock_follow_time(clock);
        else if (clock->adopted && ticked)
            clock_advance(clock);
        if (clock->adopted && clock->now >= clock->over)
            clock_unmake(clock);
    }
}

/* -------------------------------------------------------------------------- the public functions */

static struct scm_clock *create(enum clock_kind kind, uint64_t period, const char *what)
{
    int error = 0;
    struct scm_thread *self = scm_self ? scm_self : scm_enter(what, &error);
    struct scm_clock *clock = self ? clock_make(self, kind, period) : NULL;

    if (!clock)
        errno = error ? error : ENOMEM;
    return clock;
}

struct scm_clock *scm_clock_create(void)
{
    return create(USER_CLOCK, 0, "scm_clock_create");
}

struct scm_clock *scm_clock_create_realtime(unsigned period)
{
    if (!period || period > 86400000) {
        os_report("scm_clock_create_realtime: a period of %u ms is not in 1 to 86400000", period);
        errno = EINVAL;
        return NULL;
    }
    return create(REAL_TIME_CLOCK, (uint64_t)period * 1000000, "scm_clock_create_realtime");
}

/* Whether the calling thread may use the clock: 0, or an error number. */
int clock_check(const struct scm_clock *clock, const char *what, struct scm_thread **self)
{
    if (!clock) {
        os_report("%s: the clock is NULL", what);
        return EINVAL;
    }
    *self = scm_self;
    if (!*self)
        return scm_refuse_absent(what);
    if (clock->thread != *self) {
        os_report("%s: clock %p is another thread's", what, (const void *)clock);
        return EPERM;
    }
    return 0;
}

int scm_clock_destroy(struct scm_clock *clock)
{
    struct scm_thread *self;
    int error = clock_check(clock, "scm_clock_destroy", &self);
    bool waiting;

    if (error)
        return error;
    waiting = something_waits(self);
    clock_end(clock);
    clock_unmake(clock);
    collect_after_tick(self, waiting);
    return 0;
}
