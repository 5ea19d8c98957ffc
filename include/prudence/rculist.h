/* SPDX-License-Identifier: MIT */
/*
 * A doubly linked, circular list that may be read while one writer changes it: the kernel's
 * list_*_rcu, with the same names and rules.
 *
 *  - Writers exclude each other by a lock of their own. Readers are inside a read-side critical
 *    section of the domain whose grace periods the writers wait for. Readers go forward only.
 *  - A removed element keeps its `next`, so readers that are at the element can go on. Therefore
 *    the element may be freed, changed or added again only after a grace period. A removed
 *    element's `prev` is NULL, so a second removal is found.
 *  - A reader sees each element that is in the list throughout, and sees an element that is added
 *    or removed in that time in either state. Emptiness and then an element are two questions; use
 *    prudence_list_first_or_null_rcu.
 *
 * C11 and C++17. Nothing here waits or allocates. Programs need no library for this header.
 * Bindings find the functions in the library (<prudence/bindings.h>).
 */
#ifndef PRUDENCE_RCULIST_H
#define PRUDENCE_RCULIST_H

#include <stdbool.h>
#include <stddef.h>

#include <prudence/language.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Link in the list: the head, and the member of each element. */
struct prudence_list {
    struct prudence_list *next, *prev;
};

#define PRUDENCE_LIST_INIT(head)                                                                   \
    {                                                                                              \
        &(head), &(head)                                                                           \
    }

/* Returns the element of type `type` whose `member` is at `link`. */
#define prudence_list_entry(link, type, member) PRUDENCE_CONTAINER_OF(link, type, member)

/* ------------------------------------------------------------------------------------- writers */

/* Initialises a list that no reader knows yet; the _rcu form one that readers may be at. */
PRUDENCE_INLINE void prudence_list_init(struct prudence_list *head)
{
    head->next = head->prev = head;
}

PRUDENCE_INLINE void prudence_list_init_rcu(struct prudence_list *head)
{
    __atomic_store_n(&head->next, head, __ATOMIC_RELAXED);
    __atomic_store_n(&head->prev, head, __ATOMIC_RELAXED);
}

/* Release: a reader that finds the element by `next` sees the element's contents. */
static inline void prudence_list_insert_rcu_(struct prudence_list *link, struct prudence_list *prev,
                                             struct prudence_list *next)
{
    link->next = next;
    link->prev = prev;
    __atomic_store_n(&prev->next, link, __ATOMIC_RELEASE);
    next->prev = link;
}

/*
 * Adds after `head` (an element or the list's head); _tail adds before the head, so at the end of
 * the list.
 */
PRUDENCE_INLINE void prudence_list_add_rcu(struct prudence_list *link, struct prudence_list *head)
{
    prudence_list_insert_rcu_(link, head, head->next);
}

PRUDENCE_INLINE void prudence_list_add_tail_rcu(struct prudence_list *link,
                                                struct prudence_list *head)
{
    prudence_list_insert_rcu_(link, head->prev, head);
}

/*
 * Removes the element. `next` stays for readers that are there. Release: a reader may get to the
 * next element by this store alone, and sees everything that the adding thread wrote.
 */
PRUDENCE_INLINE void prudence_list_del_rcu(struct prudence_list *link)
{
    link->next->prev = link->prev;
    __atomic_store_n(&link->prev->next, link->next, __ATOMIC_RELEASE);
    link->prev = PRUDENCE_NULL;
}

/*
 * Replaces `old` by `fresh` in one step. `prev` of `old` is NULL before the step, so a replacement
 * of an element by itself is found, as a second removal is: the list stays as it was, and the
 * process faults.
 */
PRUDENCE_INLINE void prudence_list_replace_rcu(struct prudence_list *old,
                                               struct prudence_list *fresh)
{
    fresh->next = old->next;
    fresh->prev = old->prev;
    old->prev = PRUDENCE_NULL;
    __atomic_store_n(&fresh->prev->next, fresh, __ATOMIC_RELEASE);
    fresh->next->prev = fresh;
}

static inline void prudence_list_splice_rcu_(struct prudence_list *list, struct prudence_list *prev,
                                             struct prudence_list *next, void (*synchronize)(void))
{
    struct prudence_list *first = list->next, *last = list->prev;

    if (first == list)
        return;
    prudence_list_init_rcu(list);
    synchronize(); /* readers of `list` have ended; otherwise they would not find the end */
    last->next = next;
    __atomic_store_n(&prev->next, first, __ATOMIC_RELEASE);
    first->prev = prev;
    next->prev = last;
}

/*
 * Moves all of `list`, which then is empty, after `head`, or to its end. `synchronize` waits for a
 * grace period of the readers of `list`.
 */
PRUDENCE_INLINE void prudence_list_splice_init_rcu(struct prudence_list *list,
                                                   struct prudence_list *head,
                                                   void (*synchronize)(void))
{
    prudence_list_splice_rcu_(list, head, head->next, synchronize);
}

PRUDENCE_INLINE void prudence_list_splice_tail_init_rcu(struct prudence_list *list,
                                                        struct prudence_list *head,
                                                        void (*synchronize)(void))
{
    prudence_list_splice_rcu_(list, head->prev, head, synchronize);
}

/* ------------------------------------------------------------------------------------- readers */

#define prudence_list_next_(link) __atomic_load_n(&(link)->next, __ATOMIC_CONSUME)

/* Returns the link after an element or the head; a reader then also sees the element's contents. */
PRUDENCE_INLINE struct prudence_list *prudence_list_next_rcu(const struct prudence_list *link)
{
    return prudence_list_next_(link);
}

PRUDENCE_INLINE bool prudence_list_empty(const struct prudence_list *head)
{
    return __atomic_load_n(&head->next, __ATOMIC_RELAXED) == head;
}

static inline struct prudence_list *prudence_list_other_rcu_(struct prudence_list *head,
                                                             struct prudence_list *link)
{
    struct prudence_list *next = prudence_list_next_rcu(link);

    return next == head ? PRUDENCE_NULL : next;
}

/* Returns the first element's link, or NULL if there is none. */
PRUDENCE_INLINE struct prudence_list *prudence_list_first_link_rcu(struct prudence_list *head)
{
    return prudence_list_other_rcu_(head, head);
}

#define prudence_list_entry_or_null_(link, type, member)                                           \
    ((link) ? prudence_list_entry(link, type, member) : PRUDENCE_NULL)

/* Return the first element, or the element after `link`, or NULL if there is none. */
#define prudence_list_first_or_null_rcu(head, type, member)                                        \
    (__extension__({                                                                               \
        struct prudence_list *prudence_link_ = prudence_list_other_rcu_((head), (head));           \
        prudence_list_entry_or_null_(prudence_link_, type, member);                                \
    }))

#define prudence_list_next_or_null_rcu(head, link, type, member)                                   \
    (__extension__({                                                                               \
        struct prudence_list *prudence_link_ = prudence_list_other_rcu_((head), (link));           \
        prudence_list_entry_or_null_(prudence_link_, type, member);                                \
    }))

/*
 * Runs for each element; `link` points to the element's link (the kernel's list_for_each_rcu), and
 * the head after the loop. For lists with elements of several types.
 */
#define prudence_list_for_each_rcu(link, head)                                                     \
    for ((link) = prudence_list_next_rcu(head); (link) != (head);                                  \
         (link) = prudence_list_next_rcu(link))

/* Runs for the elements after `link`, which was found in the same section. */
#define prudence_list_for_each_continue_rcu(link, head)                                            \
    for ((link) = prudence_list_next_rcu(link); (link) != (head);                                  \
         (link) = prudence_list_next_rcu(link))

/* The loops load without a call, because strict compilers warn of casts of a function's value. */
#define prudence_list_entry_of_(pos, link, member)                                                 \
    prudence_list_entry(link, __typeof__(*(pos)), member)

/* Runs for each element; `pos` points to the element, and to no element after the loop. */
#define prudence_list_for_each_entry_rcu(pos, head, member)                                        \
    for ((pos) = prudence_list_entry_of_(pos, prudence_list_next_(head), member);                  \
         &(pos)->member != (head);                                                                 \
         (pos) = prudence_list_entry_of_(pos, prudence_list_next_(&(pos)->member), member))

/* Run for the elements after `pos`, and from `pos` on. `pos` was found in the same section. */
#define prudence_list_for_each_entry_continue_rcu(pos, head, member)                               \
    for ((pos) = prudence_list_entry_of_(pos, prudence_list_next_(&(pos)->member), member);        \
         &(pos)->member != (head);                                                                 \
         (pos) = prudence_list_entry_of_(pos, prudence_list_next_(&(pos)->member), member))

#define prudence_list_for_each_entry_from_rcu(pos, head, member)                                   \
    for (; &(pos)->member != (head);                                                               \
         (pos) = prudence_list_entry_of_(pos, prudence_list_next_(&(pos)->member), member))

/*
 * For writers, under their lock; `following` is the successor, so `pos` may be removed. Readers
 * need no such form, because they remove nothing, and a removed element still leads to the next
 * one. (The kernel had a list_for_each_safe_rcu once.)
 */
#define prudence_list_for_each_entry_safe(pos, following, head, member)                            \
    for ((pos) = prudence_list_entry_of_(pos, (head)->next, member),                               \
        (following) = prudence_list_entry_of_(pos, (pos)->member.next, member);                    \
         &(pos)->member != (head); (pos) = (following),                                            \
        (following) = prudence_list_entry_of_(pos, (following)->member.next, member))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_RCULIST_H */
