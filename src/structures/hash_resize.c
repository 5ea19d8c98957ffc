/* SPDX-License-Identifier: MIT */
/*
 * Resizing: which array there shall be, and the steps to it. Each update takes a small step while a resize is under way,
 * unless another thread is just taking one. An update that finds its group not moved moves that first. So
 * the work of one update is bounded, and nobody waits for a thread that has lost its CPU in the middle of a step.
 */
#include <errno.h>

#include "os/os.h"
#include "structures/hash.h"

/*
 * More objects than buckets: twice the buckets (the smallest array: eight times). So few that a quarter of the buckets
 * (or the smallest array) would be half used: that, unless readers still hold up as much of arrays that were
 * replaced. So a reader that stays while objects come and go keeps less than three times the largest array.
 */
#define SHRINK_ORDERS 2

#define WORDS_CLEARED 512
#define GROUPS_MOVED  8

bool hash_try_stepping(struct hash_table *table)
{
    return !load_relaxed(&table->stepping) && !exchange_acquire(&table->stepping, 1);
}

void hash_end_stepping(struct hash_table *table)
{
    store_release(&table->stepping, 0);
}

static unsigned within_bounds(const struct hash_table *table, unsigned order)
{
    return (unsigned)clamp_size(order, table->order_min, table->order_max);
}

/* ------------------------------------------------------------- steps, by the thread that has `stepping` */

bool hash_begin(struct hash_table *table, unsigned order)
{
    bool zeroed;
    uintptr_t fresh = views_new(&table->views, order, &zeroed);

    if (!fresh) {
        count_add(&table->refused, 1);
        return false;
    }
    store_relaxed(&table->fresh, fresh);
    store_relaxed(&table->cursor, zeroed ? view_size(fresh) : 0);
    store_relaxed(&table->phase, HASH_CLEARING);
    return true;
}

static void publish(struct hash_table *table)
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
        publish(table);
}

static uint64_t groups(const struct hash_table *table)
{
    uint64_t old = view_size(table->from), new = view_size(table->public.view);

    return old < new ? old : new;
}

/* Every group was moved, by this thread or by another, which this one has seen. Returns the old array. */
static uintptr_t finish(struct hash_table *table)
{
    uintptr_t old = table->from;

    if (view_order(old) < view_order(table->public.view))
        count_add(&table->grows, 1);
    else
        count_add(&table->shrinks, 1);
    store_relaxed(&table->phase, HASH_IDLE);
    store_release(&table->from, 0);
    return old;
}

static uintptr_t move_some(struct hash_table *table)
{
    uint64_t end = table->cursor + GROUPS_MOVED;

    end = end < groups(table) ? end : groups(table);
    for (uint64_t group = table->cursor; group < end; group++)
        hash_move(table->from, table->public.view, group);
    store_relaxed(&table->cursor, end);
    return end == groups(table) ? finish(table) : 0;
}

/* Returns an array that the table does not have any more, or 0. */
static uintptr_t step(struct hash_table *table)
{
    switch ((enum hash_phase)table->phase) {
    case HASH_CLEARING:
        clear_some(table);
        return 0;
    case HASH_MOVING:
        return move_some(table);
    case HASH_IDLE:
        break;
    }
    return 0;
}

/* ---------------------------------------------------------------------------------- by any thread */

/* Ends a step, and defers the array that was replaced by it, if there is one: a deferral may wait for readers. */
static void end_step(struct hash_table *table, uintptr_t old)
{
    hash_end_stepping(table);
    if (old)
        views_defer(&table->views, old);
}

void hash_step(struct hash_table *table)
{
    if (hash_try_stepping(table))
        end_step(table, step(table));
}

static unsigned quarter_of(unsigned order)
{
    return order - SHRINK_ORDERS < VIEW_ORDER_PAGE ? VIEW_ORDER_SMALL : order - SHRINK_ORDERS;
}

/* The order that the number of objects asks for. */
static unsigned wanted(const struct hash_table *table, unsigned order, uint64_t objects)
{
    if (objects > UINT64_C(1) << order)
        return within_bounds(table, views_order(UINT64_C(2) << order));
    if (order > VIEW_ORDER_SMALL && objects <= (UINT64_C(1) << quarter_of(order)) / 2)
        return within_bounds(table, quarter_of(order));
    return order;
}

void hash_follow_count(struct hash_table *table)
{
    unsigned order, next;

    if (table->flags & PRUDENCE_HASH_FIXED || load_relaxed(&table->phase) != HASH_IDLE ||
        !hash_try_stepping(table))
        return;
    order = view_order(table->public.view);
    next = wanted(table, order, hash_count(table));
    if (table->phase == HASH_IDLE &&
        (next > order ||
         (next < order && !views_wait(&table->views, view_bytes(table->public.view)))))
        hash_begin(table, next);
    hash_end_stepping(table);
}

void hash_take_stepping(struct hash_table *table)
{
    while (!hash_try_stepping(table))
        os_sleep_ns(50000);
}

int prudence_hash_resize(struct prudence_hash *public, uint64_t buckets)
{
    struct hash_table *table = hash_of(public);
    unsigned order = within_bounds(table, views_order(buckets));
    bool begun = true;

    while (begun) {
        uintptr_t old;
        bool done;

        hash_take_stepping(table);
        old = step(table);
        done = table->phase == HASH_IDLE && view_order(table->public.view) == order;
        if (table->phase == HASH_IDLE && !done)
            begun = hash_begin(table, order);
        end_step(table, old);
        if (done)
            return 0;
    }
    return ENOMEM;
}
