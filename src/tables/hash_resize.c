/* SPDX-License-Identifier: MIT */
/*
 * Resizing: chooses the next array, and takes the steps there. Each update takes a small step while
 * a resize is under way, unless another thread is taking one. An update whose group is not moved
 * yet moves that group first. So the work of one update is bounded, and no thread waits for one
 * that lost its CPU during a step.
 */
#include <errno.h>

#include "os/os.h"
#include "tables/hash.h"
#include "tables/hash_move.h"
#include "tables/hash_resize.h"
#include "tables/writers.h"

/*
 * A table that holds the most objects for its buckets gets twice the buckets (the smallest array:
 * eight times). The most is an object a bucket or, in arrays that the processor's caches hold
 * easily, half of that: a lookup takes least when the processor predicts that the first node of a
 * chain is the last one. A table shrinks to a quarter of the buckets (or to the smallest array)
 * when that would have half of its most, unless readers still hold up replaced arrays of as many
 * bytes as the present one. So a reader that stays while objects come and go holds up less than
 * three times the largest array.
 */
#define SHRINK_ORDERS 2
#define FULL_ORDER    12u /* from here on, an object a bucket */

#define WORDS_CLEARED 512
#define GROUPS_MOVED  8

/* The exchange is seq-cst, as writers.h requires. */
bool hash_resize_try_stepping(struct hash_table *table)
{
    if (load_relaxed(&table->stepping) && !writers_are_gone())
        return false;
    os_busy_enter();
    if (!__atomic_exchange_n(&table->stepping, 1u, __ATOMIC_SEQ_CST) || writers_are_gone()) {
        if (likely(!writers_must_wait()))
            return true;
        store_release(&table->stepping, 0u);
    }
    os_busy_leave();
    return false;
}

void hash_resize_end_stepping(struct hash_table *table)
{
    store_release(&table->stepping, 0u);
    os_busy_leave();
}

static unsigned within_bounds(const struct hash_table *table, unsigned order)
{
    return (unsigned)clamp_size(order, table->order_min, table->order_max);
}

/* ----------------------------------------------------- steps, by the thread that has `stepping` */

static void hash_resize_start(struct hash_table *table, uintptr_t fresh, bool zeroed)
{
    store_relaxed(&table->fresh, fresh);
    store_relaxed(&table->cursor, zeroed ? view_size(fresh) : 0);
    store_relaxed(&table->phase, HASH_CLEARING);
}

static void hash_resize_publish(struct hash_table *table)
{
    store_release(&table->from, table->public.view);
    store_release(&table->public.view, table->fresh);
    store_relaxed(&table->fresh, 0);
    store_relaxed(&table->cursor, 0);
    store_relaxed(&table->phase, HASH_MOVING);
}

static void clear_some(struct hash_table *table)
{
    uint64_t done = table->cursor, size = view_size(table->fresh);
    uint64_t end = done + WORDS_CLEARED < size ? done + WORDS_CLEARED : size;

    for (uint64_t i = done; i < end; i++)
        store_relaxed(&view_words(table->fresh)[i], 0);
    store_relaxed(&table->cursor, end);
    if (end == size)
        hash_resize_publish(table);
}

static uint64_t groups(const struct hash_table *table)
{
    uint64_t old = view_size(table->from), new = view_size(table->public.view);

    return old < new ? old : new;
}

/* Lets the replaced array go if it may. Returns the array if the caller must defer it. */
static uintptr_t let_go(struct hash_table *table)
{
    uintptr_t old = table->left.view;
    bool unread = !views_may_defer(&table->views, &table->left);

    if (unread && !views_is_unread(&table->views, &table->left))
        return 0;
    table->left.view = 0;
    store_relaxed(&table->phase, HASH_IDLE);
    if (unread)
        views_free(&table->views, old);
    return unread ? 0 : old;
}

/* Ends the resize. This thread has seen that every group was moved, by itself or another thread. */
static uintptr_t finish(struct hash_table *table)
{
    uintptr_t old = table->from;

    if (view_order(old) < view_order(table->public.view))
        count_add(&table->grows, 1);
    else
        count_add(&table->shrinks, 1);
    store_release(&table->from, 0);
    table->left = views_leave(&table->views, old);
    store_relaxed(&table->phase, HASH_LEAVING);
    return table->leaves_outside ? 0 : let_go(table);
}

static uintptr_t move_some(struct hash_table *table)
{
    uint64_t end = table->cursor + GROUPS_MOVED;

    end = end < groups(table) ? end : groups(table);
    for (uint64_t group = table->cursor; group < end; group++)
        hash_move(table->from, table->public.view, group, true);
    store_relaxed(&table->cursor, end);
    return end == groups(table) ? finish(table) : 0;
}

/* Returns an array that the table no longer has and that the caller must defer, or 0. */
static uintptr_t step(struct hash_table *table)
{
    switch ((enum hash_phase)table->phase) {
    case HASH_CLEARING:
        clear_some(table);
        return 0;
    case HASH_MOVING:
        return move_some(table);
    case HASH_LEAVING:
        return table->leaves_outside ? 0 : let_go(table);
    case HASH_IDLE:
        break;
    }
    return 0;
}

/* -------------------------------------------------------------------------------- by any thread */

/* Ends a step, and defers the array that it replaced, if any. This comes last because a deferral
 * may wait for readers. */
static void end_step(struct hash_table *table, uintptr_t old)
{
    hash_resize_end_stepping(table);
    if (old)
        views_defer(&table->views, old);
}

void hash_resize_step(struct hash_table *table)
{
    if (hash_resize_try_stepping(table))
        end_step(table, step(table));
}

void hash_resize_leave_array(struct hash_table *table)
{
    if (unlikely(load_relaxed(&table->phase) == HASH_LEAVING) && hash_resize_try_stepping(table))
        end_step(table, table->phase == HASH_LEAVING ? let_go(table) : 0);
}

static unsigned quarter_of(unsigned order)
{
    return order - SHRINK_ORDERS < VIEW_ORDER_PAGE ? VIEW_ORDER_SMALL : order - SHRINK_ORDERS;
}

static uint64_t objects_most(unsigned order)
{
    return UINT64_C(1) << (order < FULL_ORDER ? order - 1 : order);
}

/* Returns the order that the number of objects asks for. */
static unsigned wanted(const struct hash_table *table, unsigned order, uint64_t objects)
{
    if (objects > objects_most(order))
        return within_bounds(table, views_order(UINT64_C(2) << order));
    if (order > VIEW_ORDER_SMALL && objects <= objects_most(quarter_of(order)) / 2)
        return within_bounds(table, quarter_of(order));
    return order;
}

void hash_resize_take_stepping(struct hash_table *table)
{
    while (!hash_resize_try_stepping(table))
        os_sleep_ns(50000);
}

bool hash_resize_begin(struct hash_table *table, uintptr_t view, unsigned order)
{
    bool zeroed, begins;
    uintptr_t fresh = views_new(&table->views, order, &zeroed);

    if (!fresh) {
        add_relaxed(&table->refused, 1);
        return false;
    }
    hash_resize_take_stepping(table);
    begins = table->phase == HASH_IDLE && table->public.view == view;
    if (begins)
        hash_resize_start(table, fresh, zeroed);
    hash_resize_end_stepping(table);
    if (!begins)
        views_free(&table->views, fresh);
    return true;
}

/* Runs without `stepping`, because it allocates and reads the bytes that wait for readers. */
void hash_resize_follow_count(struct hash_table *table)
{
    uintptr_t view = load_acquire(&table->public.view);
    unsigned next;

    if (table->flags & PRUDENCE_HASH_FIXED || load_relaxed(&table->phase) != HASH_IDLE ||
        load_relaxed(&table->preparing) || exchange_relaxed(&table->preparing, 1))
        return;
    next = wanted(table, view_order(view), hash_count(table));
    if (next > view_order(view) ||
        (next < view_order(view) && !views_wait(&table->views, view_bytes(view))))
        hash_resize_begin(table, view, next);
    store_relaxed(&table->preparing, 0u);
}

int prudence_hash_resize(struct prudence_hash *public, uint64_t buckets)
{
    struct hash_table *table = hash_of(public);
    unsigned order;

    if (!table)
        return EINVAL;
    order = within_bounds(table, views_order(buckets));
    for (;;) {
        enum hash_phase phase;
        uintptr_t old, view;

        hash_resize_take_stepping(table);
        old = step(table);
        phase = (enum hash_phase)table->phase;
        view = table->public.view;
        end_step(table, old);
        if (phase == HASH_CLEARING || phase == HASH_MOVING)
            continue;
        if (view_order(view) == order)
            return 0;
        if (phase == HASH_LEAVING)
            return EAGAIN;
        if (!hash_resize_begin(table, view, order))
            return ENOMEM;
    }
}
