/* SPDX-License-Identifier: MIT */
/*
 * The owner of a CPU's caches closes them. Restartable sequences do not read the owner; they
 * find no object, no room, and the ring's stop reached (docs/adr/0001). A release reopens the
 * caches in the state of the owner. A line may be closed without an owner; the next slow path opens
 * that line.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/object_cache.h"
#include "slab/reclaim/drain.h"
#include "support/slab_test.h"

#define ROOM 24

#define TRIES 10

static struct prudence_cache *cache;
static struct cpu_cache *cpu;
static void *objects[3];

/* Interrupted sections give up, too, but hardly ten times in a row. */
static void *pop(void)
{
    void *object = NULL;

    for (unsigned i = 0; i < TRIES && !object; i++)
        object = os_percpu_pop(&cache->percpu);
    return object;
}

static bool push(void *object)
{
    unsigned tries = 0;

    while (!os_percpu_push(&cache->percpu, object))
        if (++tries == TRIES)
            return false;
    return true;
}

static bool append(void *object)
{
    unsigned tries = 0;

    while (!os_percpu_append(&cache->percpu, object))
        if (++tries == TRIES)
            return false;
    return true;
}

/* Puts some objects on the stack, and leaves a free slot there and in the ring. */
static void prepare(void)
{
    void *warm[ROOM];

    if (!OS_PERCPU_CLOSES || !os_percpu_rseq)
        skip();
    cache = fixed_cache(64, ROOM, manual_domain());
    allocate_all(cache, warm, ROOM / 2);
    cpu = cpu_here(cache);
    free_all(cache, warm, ROOM / 2);
    allocate_all(cache, objects, 3);
    prudence_cache_free_deferred(
        cache, prudence_cache_alloc(cache)); /* a slow path; the next ones are fast */
    assert_true(stack_count(&cpu->line) > 1 && stack_count(&cpu->line) < ROOM - 1);
}

static void finish(void)
{
    check_books(cache);
    free_all(cache, objects, 3);
    destroy_empty(cache);
}

static void assert_closed(void)
{
    uint64_t word = cpu->line.stack_word, tail = cpu->line.ring_tail;

    assert_null(pop());
    assert_false(push(objects[0]));
    assert_false(append(objects[0]));
    assert_int_equal(cpu->line.stack_word, word);
    assert_int_equal(cpu->line.ring_tail, tail);
}

/* Runs each fast path once. */
static void assert_open(void)
{
    void *object = pop();

    assert_non_null(object);
    assert_true(push(object));
    object = pop();
    assert_true(append(object));
}

TEST(taken_here)
{
    int token;

    prepare();
    assert_open();
    assert_ptr_equal(cpu_cache_take(cache, &token), cpu);
    assert_closed();
    assert_null(cpu_cache_take(cache, &token));
    cpu_cache_release(cpu);
    assert_open();
    finish();
}

TEST(taken_from_elsewhere)
{
    int token;

    prepare();
    assert_true(cpu_cache_take_remote(cpu, &token));
    assert_closed();
    cpu_cache_release(cpu);
    assert_open();
    cpu_cache_claim_all(cache, &token);
    os_percpu_fence_all();
    cpu_cache_confirm_all(cache, &token);
    assert_closed();
    cpu_cache_release_all(cache, &token, true);
    assert_open();
    finish();
}

/* Fast paths see the effects of the owner's operations, and the ring's stop has not moved. */
TEST(a_release_opens_what_is_there)
{
    uint64_t stop;
    void *taken[2];
    unsigned appended = 0;
    int token;

    prepare();
    stop = cpu->line.ring_stop;
    assert_true(append(pop()));
    assert_ptr_equal(cpu_cache_take(cache, &token), cpu);
    assert_int_equal(object_cache_take(cpu, taken, 2), 2);
    cpu_cache_release(cpu);
    assert_int_equal(cpu->line.ring_stop, stop);
    assert_true(push(taken[1]));
    assert_true(push(taken[0]));
    assert_ptr_equal(pop(), taken[0]);
    assert_true(push(taken[0]));
    while (stack_count(&cpu->line) && append(cpu->line.stack[stack_count(&cpu->line) - 1])) {
        assert_non_null(pop());
        appended++;
    }
    assert_int_equal(cpu->line.ring_tail, stop);
    assert_true(appended > 0);
    finish();
}

TEST(an_empty_stack_has_nothing_below)
{
    void *more[ROOM];
    unsigned count = 0;
    uint64_t word;

    prepare();
    while (stack_count(&cpu->line))
        more[count++] = pop();
    word = cpu->line.stack_word;
    assert_null(pop());
    assert_int_equal(cpu->line.stack_word, word);
    while (count)
        assert_true(push(more[--count]));
    finish();
}

/* A line that stays closed after a take that was interrupted before it had committed its token, or
 * by a claim made over that token. */
TEST(closed_and_nobodys)
{
    void *more;

    prepare();
    for (unsigned i = 0; i < 3; i++) {
        cpu->line.pop_from = i == 0 ? os_percpu_nothing + 1 : cpu->line.pop_from;
        cpu->line.stack_limit = i == 1 ? 0 : cpu->line.stack_limit;
        cpu->line.ring_stop = i == 2 ? 0 : cpu->line.ring_stop;
        check_books(cache);
        more = prudence_cache_alloc(cache); /* none of these three closings lasts */
        prudence_cache_free(cache, more);
        more = prudence_cache_alloc(cache);
        prudence_cache_free_deferred(cache, more);
        assert_open();
        check_books(cache);
    }
    finish();
}

TEST(lines_without_arrays_and_owned_for_good)
{
    struct prudence_cache *fresh;

    prepare();
    assert_null(os_percpu_pop(&os_percpu_owned_lines));
    assert_false(os_percpu_push(&os_percpu_owned_lines, objects[0]));
    assert_false(os_percpu_append(&os_percpu_owned_lines, objects[0]));
    fresh = fixed_cache(64, ROOM, manual_domain());
    for (unsigned rounds = 0; rounds < 2; rounds++) { /* new, and after a trim */
        assert_int_equal(cpu_here(fresh)->slots, 0);
        assert_null(os_percpu_pop(&fresh->percpu));
        assert_false(os_percpu_push(&fresh->percpu, objects[0]));
        assert_false(os_percpu_append(&fresh->percpu, objects[0]));
        prudence_cache_free(fresh, prudence_cache_alloc(fresh));
        for (unsigned i = 0; i < 3; i++) /* empties the caches, then finds them empty */
            drain_fully(fresh);
    }
    destroy_empty(fresh);
    finish();
}

SUITE(pin_thread())
