/* SPDX-License-Identifier: MIT */
/*
 * A stack without a lock, on which any number of threads push and pop. (P. McKenney, "Exploiting
 * Deferred Destruction", 2004, section 2.2.14: push, and a pop that is wrong.)
 *
 * The fault of the simple pop is known as ABA: a thread loads the top, A, and the node below, B;
 * others pop A and B, and push A again; the thread's compare-and-swap makes B the top, which is on
 * the stack no more. Here a popped node is not pushed again, nor freed, before a grace period has
 * passed. So a thread that has loaded A inside a section finds A on top only if A was never
 * removed.
 *
 *     prudence_read_lock();
 *     node = prudence_stack_pop(&stack);
 *     prudence_read_unlock();
 *     if (node)
 *         prudence_free_deferred(prudence_stack_entry(node, struct message, node));
 *
 *  - Sections: pop is called inside a read-side section of one domain, the same for all threads
 *    that pop. push and take_all need none.
 *  - Ownership: a node belongs to the stack from push to pop. After that its object may be used,
 *    but pushed (on any stack) or freed only after a grace period of that domain. If there are
 *    threads that pop, this also holds for nodes of take_all.
 *  - Progress: lock-free. A thread may try again as often as others succeed.
 *  - Signals: push and take_all are async-signal-safe; pop is, too, inside a section. Fork: a child
 *    has a whole stack, with the nodes that were on it.
 *  - Order: the thread that pops a node sees everything that was done before the push.
 */
#ifndef PRUDENCE_STACK_H
#define PRUDENCE_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <prudence/language.h>

/* Member of the caller's object. */
struct prudence_stack_node {
    /* Atomic. Constant while the node is on a stack, and for a grace period after that. */
    struct prudence_stack_node *below;
};

/* All zero means empty. */
struct prudence_stack {
    struct prudence_stack_node *top; /* atomic */
};

#define prudence_stack_entry(place, type, member) PRUDENCE_CONTAINER_OF(place, type, member)

PRUDENCE_INLINE bool prudence_stack_is_empty(const struct prudence_stack *stack)
{
    return !__atomic_load_n(&stack->top, __ATOMIC_RELAXED);
}

/*
 * Returns true if the stack was empty. Release: the thread that pops the node sees everything done
 * before.
 */
PRUDENCE_INLINE bool prudence_stack_push(struct prudence_stack *stack,
                                         struct prudence_stack_node *node)
{
    struct prudence_stack_node *top = __atomic_load_n(&stack->top, __ATOMIC_RELAXED);

    do
        __atomic_store_n(&node->below, top, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&stack->top, &top, node, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED));
    return !top;
}

/*
 * Returns the node pushed last, or NULL if there is none. Acquire, also on failure, because the
 * next try reads another node.
 */
PRUDENCE_INLINE struct prudence_stack_node *prudence_stack_pop(struct prudence_stack *stack)
{
    struct prudence_stack_node *top = __atomic_load_n(&stack->top, __ATOMIC_ACQUIRE);

    while (top && !__atomic_compare_exchange_n(&stack->top, &top,
                                               __atomic_load_n(&top->below, __ATOMIC_RELAXED), true,
                                               __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        ;
    return top;
}

/*
 * Takes all nodes at once, the last pushed first, linked by prudence_stack_below. Returns NULL if
 * there are none.
 */
PRUDENCE_INLINE struct prudence_stack_node *prudence_stack_take_all(struct prudence_stack *stack)
{
    return __atomic_exchange_n(&stack->top, PRUDENCE_NULL, __ATOMIC_ACQUIRE);
}

PRUDENCE_INLINE struct prudence_stack_node *
prudence_stack_below(const struct prudence_stack_node *node)
{
    return __atomic_load_n(&node->below, __ATOMIC_RELAXED);
}

#endif /* PRUDENCE_STACK_H */
