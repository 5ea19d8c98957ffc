/* SPDX-License-Identifier: MIT */
/*
 * A clock is an integer and a ring of lists of descriptors. A date modulo the size of the ring is
 * the place of a list. Advancing moves one list to the thread's expired descriptors, in constant
 * time for lists of any length.
 *
 * The ring has as many lists (a power of two) as the largest extension used so far needs, so a
 * large option scm_max_extension costs nothing. Dates are compared modulo 2^64.
 */
#include <string.h>

#include "shortterm/scm.h"

#define LISTS_MIN 16

/* Time begins a few ticks before it wraps, so every test sees it wrap. */
#define TIME_BEGINS (UINT64_MAX - 20)

const char *const scm_clock_names[] = {[LOCAL_CLOCK] = "local clock",
                                       [GLOBAL_CLOCK] = "global time",
                                       [USER_CLOCK] = "further clock",
                                       [REAL_TIME_CLOCK] = "real-time clock"};

bool clock_init(struct scm_clock *clock)
{
    clock->now = TIME_BEGINS;
    clock->owner = NO_OWNER;
    clock->life = 0;
    list_init(&clock->link);
    return clock_reach(clock, 0);
}

static size_t ring_bytes(uint64_t lists)
{
    return lists * sizeof(struct page_list) + marks_words(lists) * sizeof(uint64_t);
}

static void clock_free_ring(struct scm_clock *clock)
{
    if (clock->ring)
        scm_meta_free(clock->ring, ring_bytes(clock->mask + 1));
}

void clock_release(struct scm_clock *clock)
{
    clock_free_ring(clock);
    clock->ring = NULL;
    clock->marks = NULL;
    clock->mask = 0;
    owner_detach_clock(clock);
}

/* Grows the ring so that a date may be `extension` ahead. Returns false if there is no memory. */
bool clock_reach(struct scm_clock *clock, uint64_t extension)
{
    uint64_t lists = max_size(LISTS_MIN, round_up_to_power_of_two(extension + 1));
    struct page_list *ring;
    uint64_t *marks;

    if (clock->ring && extension <= clock->mask)
        return true;
    ring = scm_meta_alloc(ring_bytes(lists));
    if (!ring)
        return false;
    marks = (uint64_t *)(ring + lists);
    for (uint64_t i = 0; clock->ring; i++) {
        uint64_t place;

        i = marks_next(clock->marks, clock->mask + 1, i);
        if (i > clock->mask)
            break;
        place = clock->ring[i].first->date & (lists - 1);
        ring[place] = clock->ring[i];
        marks_set(marks, lists, place);
    }
    clock_free_ring(clock);
    clock->ring = ring;
    clock->marks = marks;
    clock->mask = lists - 1;
    if (clock->mask >= STAMP_EPOCH)
        owner_detach_clock(clock);
    if (clock->behind)
        clock->behind = lists; /* places have changed, so read all lists */
    return true;
}

/* Returns the place of the first list that is not empty, from the place of the date `from` on, once
 * round the ring. Returns more than the mask if all are empty. */
uint64_t clock_first(const struct scm_clock *clock, uint64_t from)
{
    uint64_t place = marks_next(clock->marks, clock->mask + 1, from & clock->mask);

    return place <= clock->mask ? place : marks_next(clock->marks, clock->mask + 1, 0);
}

void clock_expire(struct scm_thread *self, struct scm_clock *clock, uint64_t place)
{
    count_expired(self, clock, list_dates(&clock->ring[place]));
    list_expires(self, &clock->ring[place]);
    marks_clear(clock->marks, clock->mask + 1, place);
}

static bool fits_in_last(const struct page_list *list, const struct page_list *from)
{
    return from->first == from->last && list->last->count + from->last->count <= PAGE_OBJECTS;
}

/* Detaches the page's descriptors from their stamps, because they go to another page. Returns false
 * if one of them has a later date in a stamp. */
static bool page_leave_stamps(struct page *page)
{
    for (uint32_t i = 0; i < page->count; i++) {
        uint32_t *stamp = &expiry_count_of(object_of(page->descriptors[i]))->stamp;

        if (!(page->descriptors[i] & BEHIND_STAMP))
            continue;
        if (stamp_lead(load_relaxed(stamp), page->stamp) > 0)
            return false;
        store_relaxed(stamp, 0u);
        page->descriptors[i] &= ~BEHIND_STAMP;
    }
    return true;
}

static bool can_be_copied(const struct page_list *list, const struct page_list *from)
{
    return fits_in_last(list, from) && page_leave_stamps(from->last);
}

/* Copies a page into the last of a list, so that many clocks with a date each do not keep a page
 * each. */
static void copy_into_last(struct scm_thread *self, struct page_list *list, struct page_list *from)
{
    struct page *page = list->last;

    memcpy(&page->descriptors[page->count], from->last->descriptors,
           from->last->count * sizeof page->descriptors[0]);
    page->count += from->last->count;
    page_free(self, from->last);
}

/* Moves the list at `place` to another clock, whose ring reaches the date. Copies at most one
 * page. */
void clock_give(struct scm_thread *self, struct scm_clock *from, uint64_t place,
                struct scm_clock *to, uint64_t date)
{
    struct page_list *source = &from->ring[place], *list = &to->ring[date & to->mask];

    if (!list->first) {
        *list = *source;
        list->first->date = date;
        marks_set(to->marks, to->mask + 1, date & to->mask);
    } else if (can_be_copied(list, source)) {
        copy_into_last(self, list, source);
    } else {
        list->before += list->last->count + source->before;
        list->last->next = source->first;
        list->last = source->last;
    }
    *source = (struct page_list){.before = 0};
    marks_clear(from->marks, from->mask + 1, place);
}
