/* SPDX-License-Identifier: MIT */
/*
 * Without sequences a thread holds a CPU's number, and owns its lines by a store (docs/adr/0146).
 * Other threads share the number, take it away, or claim lines; nothing is lost.
 *
 * ctest: not-with thread (ThreadSanitizer does not see membarriers, so no thread holds a number)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>

#include "heap/nested.h"
#include "support/fork_matrix.h"
#include "support/seen_calls.h"
#include "support/slab_test.h"

#define MANY 2000

static __thread unsigned refused;
static __thread bool refuses; /* this thread's membarriers, as a filter of system calls does */

static void sees_call(long number, long *arguments)
{
    if (number != SYS_membarrier || !refuses)
        return;
    arguments[0] = -1; /* no command */
    refused++;
}

static struct prudence_cache *cache;
static struct os_percpu_line *const owned_by_nobody = NULL;

static void prepare(void)
{
    void *object;

    cache = fixed_cache(64, 16, manual_domain());
    object = prudence_cache_alloc(cache);
    prudence_cache_free(cache, object);
    if (!os_membarrier_available())
        skip();
    assert_false(os_percpu_rseq);
}

/* Runs `body` in another thread, which has the same CPU, until it ends. */
static void elsewhere(void *(*body)(void *argument), void *argument)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, body, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void *works(void *count)
{
    for (int i = 0; i < *(int *)count; i++) {
        void *object = prudence_cache_alloc(cache);

        if (!object)
            abort();
        prudence_cache_free(cache, object);
    }
    return NULL;
}

static void hold(void)
{
    int takes = 3 * 256;

    works(&takes);
    assert_non_null(os_percpu_bias);
}

/* As a signal handler does that interrupts the holder. */
TEST(a_holder_inside_goes_to_the_node)
{
    uint64_t bypasses;
    void *object;

    prepare();
    hold();
    bypasses = stats_of(cache).busy_bypasses;
    assert_ptr_not_equal(os_percpu_step_in(cache->percpu), owned_by_nobody);
    assert_null(os_percpu_step_in(cache->percpu));
    object = prudence_cache_alloc(cache);
    assert_non_null(object);
    prudence_cache_free(cache, object);
    os_percpu_step_out();
    assert_int_equal(stats_of(cache).busy_bypasses, bypasses + 2);
    assert_non_null(os_percpu_step_in(cache->percpu));
    os_percpu_step_out();
    destroy_empty(cache);
}

/* In a nested call the gate would give out other memory. */
TEST(malloc_is_served_by_the_line_as_well)
{
    void *freed, *object;

    prepare();
    hold();
    freed = prudence_malloc(64);
    prudence_free(freed);
    nested_depth += NESTED_DEPTH_MOST + 1;
    object = prudence_malloc(64);
    nested_depth -= NESTED_DEPTH_MOST + 1;
    assert_ptr_equal(object, freed);
    prudence_free(object);
    destroy_empty(cache);
}

static void *claims(void *claimed)
{
    char token;

    *(bool *)claimed = os_percpu_take_remote(&cpu_cache_of(cache, os_cpu_current())->line, &token);
    if (*(bool *)claimed)
        os_percpu_release(&cpu_cache_of(cache, os_cpu_current())->line);
    return NULL;
}

TEST(nobody_else_takes_the_line_of_a_holder_inside)
{
    bool claimed;

    prepare();
    hold();
    assert_non_null(os_percpu_step_in(cache->percpu));
    elsewhere(claims, &claimed);
    assert_false(claimed);
    os_percpu_step_out();
    elsewhere(claims, &claimed);
    assert_true(claimed);
    destroy_empty(cache);
}

TEST(a_claimed_line_is_left_alone)
{
    struct os_percpu_line *line;
    char token;

    prepare();
    hold();
    line = &cpu_here(cache)->line;
    assert_true(os_percpu_claim(line, &token));
    assert_null(os_percpu_step_in(cache->percpu));
    os_percpu_unclaim(line, &token);
    assert_non_null(os_percpu_step_in(cache->percpu));
    assert_false(os_percpu_claim(line, &token)); /* nor does its own thread claim it */
    assert_false(os_percpu_fence_all());
    os_percpu_step_out();
    destroy_empty(cache);
}

TEST(two_threads_share_a_number_and_one_holds_it_again)
{
    int few = 1, many = 3 * 256;

    prepare();
    hold();
    elsewhere(works, &few); /* holds the number, because this thread is not inside */
    assert_null(os_percpu_step_in(cache->percpu));
    hold();
    elsewhere(works, &many);
    hold();
    check_books(cache);
    destroy_empty(cache);
}

TEST(a_number_is_not_taken_from_a_holder_inside)
{
    int few = 1;
    struct os_percpu_bias *mine;

    prepare();
    hold();
    mine = os_percpu_bias;
    assert_non_null(os_percpu_step_in(cache->percpu));
    elsewhere(works, &few);
    assert_ptr_equal(mine->inside, &cpu_here(cache)->line);
    os_percpu_step_out();
    hold(); /* the number was shared in between */
    check_books(cache);
    destroy_empty(cache);
}

static void *frees_without_membarrier(void *object)
{
    refuses = true;
    errno = 4711;
    prudence_free(object);
    if (errno != 4711 || !refused)
        abort();
    return NULL;
}

TEST(free_keeps_errno_when_a_number_is_not_given)
{
    prepare();
    hold();
    elsewhere(frees_without_membarrier, prudence_malloc(64));
    destroy_empty(cache);
}

static void *sets_the_option_again(void *unused)
{
    refuses = true;
    if (prudence_option_set("rseq", "0"))
        abort();
    return unused;
}

/* The other holder does not know, so its lines are not for others to take. */
TEST_FIRST(a_hold_outlasts_a_filter_of_membarriers)
{
    bool claimed;

    prepare();
    hold();
    destroy_empty(cache);
    elsewhere(sets_the_option_again, NULL);
    cache = fixed_cache(64, 16, manual_domain());
    assert_non_null(os_percpu_step_in(cache->percpu));
    elsewhere(claims, &claimed);
    assert_false(claimed);
    os_percpu_step_out();
    destroy_empty(cache);
}

TEST(records_of_ended_threads_are_used_again)
{
    struct os_pages_stats before, after;
    int few = 3;

    prepare();
    elsewhere(works, &few);
    os_pages_stats(&before);
    for (unsigned i = 0; i < MANY; i++)
        elsewhere(works, &few);
    os_pages_stats(&after);
    assert_true(after.metadata < before.metadata + MANY * sizeof(struct os_percpu_bias) / 2);
    hold();
    destroy_empty(cache);
}

static struct os_percpu_bias *of_other;

static void stay_inside(void (*meanwhile)(void))
{
    int few = 3;

    works(&few);
    of_other = os_percpu_bias;
    if (!of_other || !os_percpu_step_in(cache->percpu))
        abort();
    meanwhile();
    os_percpu_step_out();
}

static void *stays_inside(void *unused)
{
    stay_inside(fork_reach);
    return unused;
}

/* Otherwise a thread of the child would wait for one that is not there, and one that looks for
 * ended threads would take the record of this one. */
static int has_one_record(void *mine)
{
    prudence_synchronize(); /* notices that no handler of fork has run */
    if (of_other->inside || of_other->thread)
        return 1;
    return ((struct os_percpu_bias *)mine)->thread == os_thread_id() ? 42 : 2;
}

TEST(a_child_has_the_record_of_its_thread_alone)
{
    struct child_result result;

    prepare();
    hold();
    fork_while(stays_inside, _Fork, has_one_record, os_percpu_bias, &result);
    assert_true(child_exited_with(&result, 42));
    destroy_empty(cache);
}

static sem_t is_inside, may_leave;

static void wait_to_leave(void)
{
    sem_post(&is_inside);
    sem_wait(&may_leave);
}

static void *stays_inside_in_copy(void *unused)
{
    stay_inside(wait_to_leave);
    return unused;
}

static int another_holds_a_number(void *unused)
{
    pthread_t thread;
    bool claimed;

    sem_init(&is_inside, 0, 0);
    sem_init(&may_leave, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, stays_inside_in_copy, unused), 0);
    sem_wait(&is_inside);
    os_copy_check();
    claims(&claimed);
    if (claimed || !of_other->inside || !os_copy_made)
        return 1;
    sem_post(&may_leave);
    pthread_join(thread, NULL);
    return 42;
}

TEST(a_new_thread_of_a_copy_keeps_its_number)
{
    struct child_result result;

    prepare();
    child_run_by(_Fork, another_holds_a_number, NULL, &result);
    assert_true(child_exited_with(&result, 42));
    destroy_empty(cache);
}

SUITE(pin_thread(), assert_int_equal(prudence_option_set("rseq", "0"), 0))
