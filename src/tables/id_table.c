/* SPDX-License-Identifier: MIT */
/*
 * Tables of objects by number (<prudence/id_table.h>, ADR 66).
 *
 * A table has an array of pointers, `view`, and bitmaps of the free numbers. Writers hold `lock`,
 * but not while they allocate memory or defer an array, because both may wait for readers. Readers
 * load the view and a slot.
 *
 * Invariants, under the lock: a slot is NULL exactly when the number is free in the bitmaps, and
 * there are as many numbers as slots. A replaced array is no longer written, so a reader in that
 * array sees the table as it was at the replacement, which was during the reader's section.
 */
#include <errno.h>

#include "os/os.h"
#include "tables/attributes.h"
#include "tables/id_table.h"
#include "tables/own_successor.h"
#include "tables/writers.h"

static struct id_table *table_of(const struct prudence_id_table *public)
{
    return (struct id_table *)public;
}

/* Memory for a larger table. */
struct room {
    uintptr_t view;
    struct free_ids free;
};

static bool id_table_make_room(struct id_table *table, unsigned order, struct room *room)
{
    bool zeroed;

    if (!free_ids_make(&room->free, order))
        return false;
    room->view = views_new(&table->views, order, &zeroed);
    if (!room->view) {
        free_ids_unmake(&room->free);
        return false;
    }
    if (!zeroed)
        __builtin_memset(view_words(room->view), 0, view_bytes(room->view));
    return true;
}

static void room_unmake(struct id_table *table, const struct room *room)
{
    views_free(&table->views, room->view);
    free_ids_unmake(&room->free);
}

/* ------------------------------------------------------------------------ making and destroying */

static bool ids_read_attributes(const char *name, const struct prudence_id_table_attr *given,
                                struct prudence_id_table_attr *attr)
{
    static const char what[] = "prudence_id_table_create";

    if (!attributes_take(what, name, "prudence_id_table_attr", given, attr, sizeof *attr) ||
        !attributes_domain_is_valid(what, name, attr->domain))
        return false;
    if (!attr->ids_most || attr->ids_most >= attr->ids)
        return true;
    os_report("%s: '%s': attr->ids_most is %u, less than attr->ids, which is %u", what, name,
              attr->ids_most, attr->ids);
    errno = EINVAL;
    return false;
}

static bool id_table_make_parts(struct id_table *table, const char *name,
                                const struct prudence_id_table_attr *attr, void *first)
{
    struct room room;

    if (!views_make(&table->views, name, attr->domain, first))
        return false;
    if (!id_table_make_room(table, views_order(attr->ids), &room)) {
        views_unmake(&table->views);
        return false;
    }
    table->public.view = room.view;
    table->free = room.free;
    return true;
}

struct prudence_id_table *prudence_id_table_create(const char *name,
                                                   const struct prudence_id_table_attr *given)
{
    struct prudence_id_table_attr attr;
    struct id_table *table;
    size_t first;

    if (!ids_read_attributes(name, given, &attr))
        return NULL;
    first = views_order(attr.ids) == VIEW_ORDER_SMALL ? VIEW_FIRST_BYTES : 0;
    table = prudence_aligned_alloc(CACHE_LINES_APART, sizeof *table + first);
    if (!table)
        return NULL;
    __builtin_memset(table, 0, sizeof *table);
    table->ids_most = attr.ids_most ? attr.ids_most : UINT32_MAX;
    os_lock_init(&table->lock, OS_RANK_STRUCTURES);
    if (!id_table_make_parts(table, name, &attr, first ? table + 1 : NULL)) {
        os_lock_destroy(&table->lock);
        prudence_free(table);
        errno = ENOMEM;
        return NULL;
    }
    tables_add(&id_tables, &table->link);
    return &table->public;
}

static void ids_dispose(const struct prudence_id_table *table,
                        void (*dispose)(void *object, void *argument), void *argument)
{
    struct prudence_id_table_walk walk;
    void *object;

    prudence_id_table_for_each(&walk, table, object) dispose(object, argument);
}

int prudence_id_table_destroy(struct prudence_id_table *public,
                              void (*dispose)(void *object, void *argument), void *argument)
{
    struct id_table *table = table_of(public);
    struct room room;
    int error;

    if (!table)
        return EINVAL;
    if (!dispose && load_relaxed(&table->objects))
        return EBUSY;
    error = views_may_end(&table->views, "prudence_id_table_destroy", __builtin_return_address(0));
    if (error)
        return error;
    if (dispose)
        ids_dispose(public, dispose, argument);
    tables_remove(&table->link);
    room = (struct room){.view = table->public.view, .free = table->free};
    room_unmake(table, &room);
    views_unmake(&table->views);
    os_lock_destroy(&table->lock);
    prudence_free(table);
    tables_trim();
    return 0;
}

/* ------------------------------------------------------------------------------------- readers */

/* Finds the first object from this identifier on. */
static void *walk_from(struct prudence_id_table_walk *walk, uint64_t from)
{
    uintptr_t view = load_acquire(&walk->table->view);

    tell_acquire(&walk->table->view);
    for (uint64_t i = from; i < view_size(view); i++) {
        void *object = (void *)load_acquire(&view_words(view)[i]);

        if (object) {
            tell_acquire(&view_words(view)[i]);
            walk->id = narrow(uint32_t, i);
            return object;
        }
    }
    return NULL;
}

void *prudence_id_table_first_from(struct prudence_id_table_walk *walk,
                                   const struct prudence_id_table *table, uint32_t id)
{
    *walk = (struct prudence_id_table_walk){.id = id, .table = table};
    return walk_from(walk, id);
}

void *prudence_id_table_first(struct prudence_id_table_walk *walk,
                              const struct prudence_id_table *table)
{
    return prudence_id_table_first_from(walk, table, 0);
}

void *prudence_id_table_next(struct prudence_id_table_walk *walk)
{
    return walk_from(walk, walk->id + UINT64_C(1));
}

/* ------------------------------------------------------------------------------------- writers */

/* Copies the table into `room` under the lock, and then publishes the new array, so readers find
 * all objects there. */
static void move_into(struct id_table *table, const struct room *room)
{
    const uintptr_t *from = view_words(table->public.view);
    uintptr_t *to = view_words(room->view);

    for (uint64_t i = 0; i < view_size(table->public.view); i++)
        store_relaxed(&to[i], from[i]);
    free_ids_copy(&room->free, &table->free);
    table->free = room->free;
    table->grows++;
    tell_release(&table->public.view);
    store_release(&table->public.view, room->view);
}

/* Grows the table, unless another thread did. Returns false if there is no memory. */
static bool id_table_grow(struct id_table *table, uintptr_t full)
{
    struct room room, old;

    if (!id_table_make_room(table, views_order(2 * view_size(full)), &room))
        return false;
    os_lock_take(&table->lock);
    if (table->public.view != full) {
        os_lock_release(&table->lock);
        room_unmake(table, &room);
        return true;
    }
    old = (struct room){.view = full, .free = table->free};
    move_into(table, &room);
    os_lock_release(&table->lock);
    free_ids_unmake(&old.free);
    views_defer(&table->views, old.view);
    return true;
}

/* Takes the lowest free number, under the lock. Returns 0; ENOSPC if no number remains; or EAGAIN
 * if *full must grow. */
static int take_number(struct id_table *table, uint64_t *number, uintptr_t *full)
{
    *full = table->public.view;
    if (!free_ids_lowest(&table->free, number))
        return view_size(*full) < table->ids_most ? EAGAIN : ENOSPC;
    if (*number >= table->ids_most)
        return ENOSPC;
    free_ids_take(&table->free, *number);
    return 0;
}

/* Stores to a slot under the lock. ThreadSanitizer, which sees only the loads of inlined readers,
 * is notified. */
static void id_table_publish(uintptr_t *slot, void *object)
{
    tell_release(slot);
    store_release(slot, (uintptr_t)object);
}

int prudence_id_table_add(struct prudence_id_table *public, void *object, uint32_t *id)
{
    struct id_table *table = table_of(public);
    uint64_t number;
    uintptr_t full;
    int error;

    if (!table || !object || !id)
        return EINVAL;
    for (;;) {
        os_lock_take(&table->lock);
        error = take_number(table, &number, &full);
        if (!error)
            break;
        os_lock_release(&table->lock);
        if (error != EAGAIN)
            return error;
        if (!id_table_grow(table, full))
            return ENOMEM;
    }
    *id = narrow(uint32_t, number);
    id_table_publish(&view_words(full)[number], object);
    count_add(&table->objects, 1);
    os_lock_release(&table->lock);
    return 0;
}

/* Returns the slot of an object, under the lock, or NULL. */
static uintptr_t *id_table_slot(const struct id_table *table, uint32_t id)
{
    uintptr_t view = table->public.view;

    return id < view_size(view) && view_words(view)[id] ? &view_words(view)[id] : NULL;
}

/* Stores what an update found, or NULL, if the caller wants to know. Returns whether it found
 * something: 0 or ENOENT. */
static int ids_found(uintptr_t object, void **old)
{
    if (old)
        *old = (void *)object;
    return object ? 0 : ENOENT;
}

int prudence_id_table_replace(struct prudence_id_table *public, uint32_t id, void *object,
                              void **old)
{
    struct id_table *table = table_of(public);
    uintptr_t *slot, was = 0;

    ids_found(0, old);
    if (!table || !object)
        return EINVAL;
    os_lock_take(&table->lock);
    slot = id_table_slot(table, id);
    if (slot) {
        was = *slot;
        id_table_publish(slot, object);
    }
    os_lock_release(&table->lock);
    if (unlikely(was == (uintptr_t)object))
        return refuse_own_successor("prudence_id_table_replace");
    return ids_found(was, old);
}

int prudence_id_table_erase(struct prudence_id_table *public, uint32_t id, void **old)
{
    struct id_table *table = table_of(public);
    uintptr_t *slot, was = 0;

    if (!table) {
        ids_found(0, old);
        return EINVAL;
    }
    os_lock_take(&table->lock);
    slot = id_table_slot(table, id);
    if (slot) {
        was = *slot;
        store_relaxed(slot, 0);
        free_ids_give(&table->free, id);
        count_add(&table->objects, (uint64_t)-1);
    }
    os_lock_release(&table->lock);
    return ids_found(was, old);
}

/* ---------------------------------------------------------------------------------- statistics */

uint64_t prudence_id_table_count(const struct prudence_id_table *table)
{
    return table ? load_relaxed(&table_of(table)->objects) : 0;
}

int prudence_id_table_stats_sized(struct prudence_id_table *public,
                                  struct prudence_id_table_stats *stats, size_t size)
{
    struct id_table *table = table_of(public);
    struct prudence_id_table_stats all;

    if (!table || !stats)
        return EINVAL;
    os_lock_take(&table->lock);
    all = (struct prudence_id_table_stats){
        .objects = table->objects,
        .slots = view_size(table->public.view),
        .grows = table->grows,
        .bytes_live = sizeof *table + (table->views.first ? VIEW_FIRST_BYTES : 0) +
                      views_bytes(&table->views, table->public.view) + table->free.bytes};
    os_lock_release(&table->lock);
    all.bytes_latent = views_latent_bytes(&table->views);
    give_sized(stats, size, &all, sizeof all);
    return 0;
}
