/* SPDX-License-Identifier: MIT */
/*
 * What becomes of hazard slots when their thread ends, and in a forked child: no other thread gets
 * a slot that the owner may still use, and nothing stays named by a thread that is not there. The
 * misuse matrix (tests/misuse) has slots that are released twice.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors)
 */
#define _GNU_SOURCE
#include <limits.h>

#include <prudence/hazard.h>
#include <prudence/rcu.h>

#include "toolkit/domains/hazard_slots.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

static struct prudence_domain *domain;
static char object;

static int set_up(void **state)
{
    domain = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool is_safe(void *at)
{
    return gp_poll_objects(domain, gp_snapshot(domain), &at, 1, 1, NULL) == 1;
}

static bool becomes_safe(void *at)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (is_safe(at))
            return true;
        pause_ms(1);
    }
    return false;
}

/* --------------------------------------------------------------------------- last destructors */

static pthread_key_t key;
static unsigned rounds;
static sem_t in_last, go_on, protected, release_it;

/* Runs after the library's hook in each round, because its key is younger. */
static void use_in_last_round(void *slot)
{
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(key, slot);
        return;
    }
    sem_post(&in_last);
    while (sem_wait(&go_on))
        ;
    prudence_hazard_set(slot, &object);
    sem_post(&protected);
    while (sem_wait(&release_it))
        ;
    prudence_hazard_release(slot);
}

static void *ends_with_a_slot(void *slot_at)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();

    *(struct prudence_hazard **)slot_at = slot;
    pthread_setspecific(key, slot);
    return NULL;
}

TEST(a_slot_is_its_threads_until_the_thread_is_gone)
{
    struct prudence_hazard *slot, *others[3 * PRUDENCE_HAZARDS];
    pthread_t thread;

    sem_init(&in_last, 0, 0);
    sem_init(&go_on, 0, 0);
    sem_init(&protected, 0, 0);
    sem_init(&release_it, 0, 0);
    assert_int_equal(pthread_key_create(&key, use_in_last_round), 0);
    thread = thread_start(ends_with_a_slot, &slot);
    while (sem_wait(&in_last))
        ;
    for (unsigned i = 0; i < 3 * PRUDENCE_HAZARDS; i++) {
        others[i] = prudence_hazard_acquire();
        assert_ptr_not_equal(others[i], slot);
    }
    sem_post(&go_on);
    while (sem_wait(&protected))
        ;
    for (unsigned i = 0; i < 3 * PRUDENCE_HAZARDS; i++)
        prudence_hazard_release(others[i]);
    assert_false(is_safe(&object));
    sem_post(&release_it);
    pthread_join(thread, NULL);
    assert_true(is_safe(&object));
    pthread_key_delete(key);
}

static void *protects_and_ends(void *slot_at)
{
    *(struct prudence_hazard **)slot_at = prudence_hazard_acquire();
    prudence_hazard_set(*(struct prudence_hazard **)slot_at, &object);
    return NULL;
}

static int reuse_record(void)
{
    struct prudence_hazard *slot;

    in_thread(protects_and_ends, &slot);
    if (!becomes_safe(&object))
        return 1;
    return prudence_hazard_record_(slot)->thread ? 2 : 42;
}

TEST(the_record_of_a_thread_that_is_gone_is_free_again)
{
    expect_exit(42, reuse_record(), "");
    assert_int_equal(said("ends while its slot"), 1);
}

/* ----------------------------------------------------------------------------------------- fork */

static struct prudence_hazard *of_other;

static void *protects_by_a_movable_slot(void *reader_at)
{
    struct held_reader *reader = reader_at;

    of_other = prudence_hazard_acquire_movable();
    prudence_hazard_set(of_other, &object);
    sem_post(&reader->inside);
    while (sem_wait(&reader->leave))
        ;
    prudence_hazard_release(of_other);
    return NULL;
}

static void start_to_protect(struct held_reader *reader)
{
    sem_init(&reader->inside, 0, 0);
    sem_init(&reader->leave, 0, 0);
    reader->thread = thread_start(protects_by_a_movable_slot, reader);
    while (sem_wait(&reader->inside))
        ;
}

static int look_in_child(void *unused)
{
    int wrong = (is_safe(&object) ? 0 : 1) | (prudence_domain_synchronize(domain) != 0) << 1;

    prudence_hazard_set(of_other, &object); /* may be used and released by whoever has it */
    wrong |= is_safe(&object) << 2;
    prudence_hazard_release(of_other);
    wrong |= (prudence_hazard_record_(of_other)->thread != 0) << 3;
    return wrong ? wrong : 42;
}

TEST(a_movable_slot_of_another_thread_names_nothing_in_a_child)
{
    struct held_reader reader;

    start_to_protect(&reader);
    assert_child(look_in_child, NULL);
    assert_false(is_safe(&object));
    held_reader_end(&reader);
    assert_true(is_safe(&object));
}

/* The first thread of the copy notices it when another one has a slot already. */
static int look_in_copy(void *unused)
{
    struct held_reader reader;
    bool is_over;

    start_to_protect(&reader);
    os_copy_check();
    is_over = is_safe(&object);
    held_reader_end(&reader);
    return is_over || !os_copy_made || !is_safe(&object) ? 1 : 42;
}

TEST(a_slot_of_a_new_thread_of_a_copy_stays)
{
    struct child_result result;

    child_run_by(_Fork, look_in_copy, NULL, &result);
    assert_true(child_exited_with(&result, 42));
}

SUITE_BETWEEN(set_up, tear_down)
