/* SPDX-License-Identifier: MIT */
/*
 * The stack, step by step: last in, first out; and the ABA fault, which deferral removes. (The
 * cases "stack" and "breaks-stack-aba" of tests/model/source/structure_cases.c try every order.)
 *
 * ctest: not-with thread (one thread)
 */
#include "support/slab_test.h"

#include <prudence/rcu.h>
#include <prudence/stack.h>

struct message {
    struct prudence_stack_node node;
    unsigned number;
};

static struct prudence_stack stack;
static struct message messages[4];

static struct message *pop(void)
{
    struct prudence_stack_node *node = prudence_stack_pop(&stack);

    return node ? prudence_stack_entry(node, struct message, node) : NULL;
}

static void push_all(void)
{
    stack = (struct prudence_stack){NULL};
    for (unsigned i = 0; i < 4; i++) {
        messages[i].number = i;
        assert_true(prudence_stack_push(&stack, &messages[i].node) == (i == 0));
    }
}

TEST(the_last_one_comes_first)
{
    push_all();
    assert_false(prudence_stack_is_empty(&stack));
    for (unsigned i = 4; i-- > 0;)
        assert_ptr_equal(pop(), &messages[i]);
    assert_null(pop());
    assert_true(prudence_stack_is_empty(&stack));
    assert_true(prudence_stack_push(&stack, &messages[2].node));
}

TEST(all_are_taken_at_once)
{
    struct prudence_stack_node *node;
    unsigned i = 4;

    push_all();
    for (node = prudence_stack_take_all(&stack); node; node = prudence_stack_below(node))
        assert_ptr_equal(node, &messages[--i].node);
    assert_int_equal(i, 0);
    assert_true(prudence_stack_is_empty(&stack));
    assert_null(prudence_stack_take_all(&stack));
}

/* The first half of a pop, by a thread that is then preempted, and the second half. */
struct half_pop {
    struct prudence_stack_node *top, *below;
};

static struct half_pop begin_pop(void)
{
    struct prudence_stack_node *top = __atomic_load_n(&stack.top, __ATOMIC_ACQUIRE);

    return (struct half_pop){top, prudence_stack_below(top)};
}

static bool end_pop(struct half_pop *half)
{
    return __atomic_compare_exchange_n(&stack.top, &half->top, half->below, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_ACQUIRE);
}

/* Does something <prudence/stack.h> forbids: pushes a popped node before a grace period has
 * passed. */
TEST(a_node_that_is_pushed_too_early_brings_back_another)
{
    struct half_pop half;

    push_all();
    half = begin_pop();
    assert_ptr_equal(pop(), &messages[3]);
    assert_ptr_equal(pop(), &messages[2]);
    prudence_stack_push(&stack, &messages[3].node);
    assert_true(end_pop(&half));
    assert_ptr_equal(pop(), &messages[2]); /* a second time */
}

/* Relies on the allocator: the popped node's memory is not reused while the other thread's
 * section lasts. */
TEST(a_deferred_node_does_not_come_back)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = domain};
    struct prudence_cache *cache = prudence_cache_create("messages", sizeof(struct message), &attr);
    struct message *first = prudence_cache_alloc(cache), *second = prudence_cache_alloc(cache);
    struct half_pop half;
    bool again = false;

    stack = (struct prudence_stack){NULL};
    prudence_stack_push(&stack, &second->node);
    prudence_stack_push(&stack, &first->node);
    half = begin_pop();
    assert_ptr_equal(pop(), first);
    assert_ptr_equal(pop(), second);
    prudence_cache_free_deferred(cache, first);
    prudence_cache_free_deferred(cache, second);
    for (unsigned i = 0; i < 2000; i++) {
        struct message *fresh = prudence_cache_alloc(cache);

        assert_true(fresh != first && fresh != second);
        prudence_stack_push(&stack, &fresh->node);
    }
    assert_false(end_pop(&half));
    while (pop())
        again = true;
    assert_true(again);
}

SUITE()
