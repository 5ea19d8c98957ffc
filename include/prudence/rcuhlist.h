/* SPDX-License-Identifier: MIT */
/*
 * A doubly linked list with a head of one word, for the buckets of hash tables, that may be read
 * while one writer changes it: the kernel's hlist_*_rcu, with the same names. The rules are those
 * of <prudence/rculist.h>. Writers exclude each other; readers are inside a section; a removed
 * element keeps `next`, and may be freed, changed or added again only after a grace period.
 *
 * C11 and C++17. Nothing here waits or allocates. Programs need no library for this header.
 * Bindings find the functions in the library (<prudence/bindings.h>).
 */
#ifndef PRUDENCE_RCUHLIST_H
#define PRUDENCE_RCUHLIST_H

#include <stdbool.h>
#include <stddef.h>

#include <prudence/language.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Member of the caller's object. */
struct prudence_hlist_node {
    struct prudence_hlist_node *next;
    struct prudence_hlist_node **pprev; /* pointer that points here; NULL: in no list */
};

/* A list; all zero means empty. */
struct prudence_hlist_head {
    struct prudence_hlist_node *first;
};

#define PRUDENCE_HLIST_HEAD_INIT                                                                   \
    {                                                                                              \
        PRUDENCE_NULL                                                                              \
    }

/* Returns the object of a node. */
#define prudence_hlist_entry(node, type, member) PRUDENCE_CONTAINER_OF(node, type, member)

/* ------------------------------------------------------------------------------------- writers */

/* Initialises an empty list, or a node that is in no list, before others can find them. */
PRUDENCE_INLINE void prudence_hlist_init(struct prudence_hlist_head *head)
{
    head->first = PRUDENCE_NULL;
}

PRUDENCE_INLINE void prudence_hlist_node_init(struct prudence_hlist_node *node)
{
    node->next = PRUDENCE_NULL;
    node->pprev = PRUDENCE_NULL;
}

/*
 * Returns whether the node is in no list: never added, or removed by prudence_hlist_del_init_rcu or
 * prudence_hlist_del_rcu.
 */
PRUDENCE_INLINE bool prudence_hlist_unhashed(const struct prudence_hlist_node *node)
{
    return !node->pprev;
}

/* Release: a reader that finds the node sees the element's contents. */
static inline void prudence_hlist_insert_rcu_(struct prudence_hlist_node *node,
                                              struct prudence_hlist_node **at)
{
    struct prudence_hlist_node *next = *at;

    node->next = next;
    node->pprev = at;
    __atomic_store_n(at, node, __ATOMIC_RELEASE);
    if (next)
        next->pprev = &node->next;
}

PRUDENCE_INLINE void prudence_hlist_add_head_rcu(struct prudence_hlist_node *node,
                                                 struct prudence_hlist_head *head)
{
    prudence_hlist_insert_rcu_(node, &head->first);
}

PRUDENCE_INLINE void prudence_hlist_add_before_rcu(struct prudence_hlist_node *node,
                                                   struct prudence_hlist_node *next)
{
    prudence_hlist_insert_rcu_(node, next->pprev);
}

PRUDENCE_INLINE void prudence_hlist_add_behind_rcu(struct prudence_hlist_node *node,
                                                   struct prudence_hlist_node *previous)
{
    prudence_hlist_insert_rcu_(node, &previous->next);
}

/* Adds at the end, which walks the whole list. */
PRUDENCE_INLINE void prudence_hlist_add_tail_rcu(struct prudence_hlist_node *node,
                                                 struct prudence_hlist_head *head)
{
    struct prudence_hlist_node **at = &head->first;

    while (*at)
        at = &(*at)->next;
    prudence_hlist_insert_rcu_(node, at);
}

static inline void prudence_hlist_unlink_rcu_(struct prudence_hlist_node *node)
{
    /* Release: a reader may get to the next node by this store alone. */
    __atomic_store_n(node->pprev, node->next, __ATOMIC_RELEASE);
    if (node->next)
        node->next->pprev = node->pprev;
}

/*
 * Remove the node. `next` stays for readers that are there. Afterwards the node is unhashed. Only
 * the init form may be called for a node that is in no list, and then does nothing.
 */
PRUDENCE_INLINE void prudence_hlist_del_rcu(struct prudence_hlist_node *node)
{
    prudence_hlist_unlink_rcu_(node);
    node->pprev = PRUDENCE_NULL;
}

PRUDENCE_INLINE void prudence_hlist_del_init_rcu(struct prudence_hlist_node *node)
{
    if (!prudence_hlist_unhashed(node))
        prudence_hlist_del_rcu(node);
}

/*
 * Replaces `old` by `fresh` in one step. If they are the same, the process faults, as in
 * prudence_list_replace_rcu.
 */
PRUDENCE_INLINE void prudence_hlist_replace_rcu(struct prudence_hlist_node *old,
                                                struct prudence_hlist_node *fresh)
{
    fresh->next = old->next;
    fresh->pprev = old->pprev;
    old->pprev = PRUDENCE_NULL;
    __atomic_store_n(fresh->pprev, fresh, __ATOMIC_RELEASE);
    if (fresh->next)
        fresh->next->pprev = &fresh->next;
}

/* Exchanges the lists of both heads. A reader that is in one of the lists finishes that list. */
PRUDENCE_INLINE void prudence_hlists_swap_heads_rcu(struct prudence_hlist_head *left,
                                                    struct prudence_hlist_head *right)
{
    struct prudence_hlist_node *node1 = left->first, *node2 = right->first;

    __atomic_store_n(&left->first, node2, __ATOMIC_RELEASE);
    __atomic_store_n(&right->first, node1, __ATOMIC_RELEASE);
    if (node2)
        node2->pprev = &left->first;
    if (node1)
        node1->pprev = &right->first;
}

/* ------------------------------------------------------------------------------------- readers */

/*
 * Return the first node of a list, or the next of one, or NULL if there is none. Call them in a
 * section, or under the writers' lock.
 */
PRUDENCE_INLINE struct prudence_hlist_node *
prudence_hlist_first_rcu(const struct prudence_hlist_head *head)
{
    return __atomic_load_n(&head->first, __ATOMIC_CONSUME);
}

PRUDENCE_INLINE struct prudence_hlist_node *
prudence_hlist_next_rcu(const struct prudence_hlist_node *node)
{
    return __atomic_load_n(&node->next, __ATOMIC_CONSUME);
}

/* Returns whether the list is empty at this moment, which may be over on return. */
PRUDENCE_INLINE bool prudence_hlist_empty(const struct prudence_hlist_head *head)
{
    return !__atomic_load_n(&head->first, __ATOMIC_RELAXED);
}

#define prudence_hlist_entry_or_null_(pos, node, member)                                           \
    (__extension__({                                                                               \
        struct prudence_hlist_node *prudence_node_ = (node);                                       \
        prudence_node_ ? prudence_hlist_entry(prudence_node_, __typeof__(*(pos)), member)          \
                       : PRUDENCE_NULL;                                                            \
    }))

#define prudence_hlist_next_entry_(pos, member)                                                    \
    prudence_hlist_entry_or_null_(pos, prudence_hlist_next_rcu(&(pos)->member), member)

/* Runs for each element; `pos` points to the element, and is NULL after the loop. */
#define prudence_hlist_for_each_entry_rcu(pos, head, member)                                       \
    for ((pos) = prudence_hlist_entry_or_null_(pos, prudence_hlist_first_rcu(head), member);       \
         (pos); (pos) = prudence_hlist_next_entry_(pos, member))

/* Run for the elements after `pos`, and from `pos` on. `pos` was found in the same section. */
#define prudence_hlist_for_each_entry_continue_rcu(pos, member)                                    \
    for ((pos) = prudence_hlist_next_entry_(pos, member); (pos);                                   \
         (pos) = prudence_hlist_next_entry_(pos, member))

#define prudence_hlist_for_each_entry_from_rcu(pos, member)                                        \
    for (; (pos); (pos) = prudence_hlist_next_entry_(pos, member))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_RCUHLIST_H */
