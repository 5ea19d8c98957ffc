/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Circular doubly linked list. The head is a link but not an item. The owner of the structure that
 * holds the head serializes all calls.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct list {
    struct list *next, *previous;
};

static inline void list_init(struct list *list)
{
    list->next = list->previous = list;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->next == list;
}

static inline void list_insert_between(struct list *item, struct list *before, struct list *after)
{
    item->previous = before;
    item->next = after;
    before->next = item;
    after->previous = item;
}

static inline void list_add_head(struct list *list, struct list *item)
{
    list_insert_between(item, list, list->next);
}

static inline void list_append(struct list *list, struct list *item)
{
    list_insert_between(item, list->previous, list);
}

/* Leaves the item as an empty list, so a second removal does no harm. */
static inline void list_remove(struct list *item)
{
    item->previous->next = item->next;
    item->next->previous = item->previous;
    list_init(item);
}

/* Moves all items of `from` to the end of `to`, and empties `from`. */
static inline void list_join(struct list *to, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    list_init(from);
}

#define list_entry(item, type, member) container_of((item), type, member)

#define list_first(list, type, member)                                                             \
    (list_is_empty(list) ? NULL : list_entry((list)->next, type, member))

#define list_for_each(item, list)                                                                  \
    for ((item) = (list)->next; (item) != (list); (item) = (item)->next)

/* Like list_for_each, but the current item may be removed; `following` is the next one. */
#define list_for_each_safe(item, following, list)                                                  \
    for ((item) = (list)->next, (following) = (item)->next; (item) != (list);                      \
         (item) = (following), (following) = (item)->next)

#endif /* BASE_LIST_H */
