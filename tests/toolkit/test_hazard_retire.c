/* SPDX-License-Identifier: MIT */
/*
 * Objects with deleters: what waits has a bound although threads stop in their deleters, a check
 * finds names in objects of any size, and heads that are retired twice are reported.
 */
#define _GNU_SOURCE
#include <prudence/hazard.h>
#include <prudence/rcu.h>

#include "toolkit/domains/hazard_slots.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"

struct retired {
    struct prudence_hazard_head head;
    char bytes[32];
};

#define DUE 1024

static unsigned deleted; /* atomic */

static void delete (struct prudence_hazard_head *head)
{
    __atomic_add_fetch(&deleted, 1, __ATOMIC_RELAXED);
    free(head);
}

static void count_deleted(struct prudence_hazard_head *head)
{
    __atomic_add_fetch(&deleted, 1, __ATOMIC_RELAXED);
}

static void retire(size_t size, void (*func)(struct prudence_hazard_head *head))
{
    struct prudence_hazard_head *head = calloc(1, sizeof(struct retired));

    prudence_hazard_retire(head, head, size, func);
}

/* ---------------------------------------------------------------------------------------- bound */

static sem_t stopped, go_on;
static uint32_t has_stopped; /* atomic */

static void stop_once(struct prudence_hazard_head *head)
{
    if (!__atomic_exchange_n(&has_stopped, 1, __ATOMIC_RELAXED)) {
        sem_post(&stopped);
        while (sem_wait(&go_on))
            ;
    }
    delete (head);
}

/* Retires until a check is due, so this thread deletes, and stops in the first deleter. */
static void *retire_and_stop(void *unused)
{
    for (unsigned i = 0; i < DUE; i++)
        retire(sizeof(struct retired), stop_once);
    return NULL;
}

static pthread_t start_and_stop_one(void)
{
    pthread_t thread;

    sem_init(&stopped, 0, 0);
    sem_init(&go_on, 0, 0);
    has_stopped = 0;
    deleted = 0;
    thread = thread_start(retire_and_stop, NULL);
    while (sem_wait(&stopped))
        ;
    return thread;
}

static void let_it_end(pthread_t thread)
{
    sem_post(&go_on);
    pthread_join(thread, NULL);
}

TEST(a_thread_that_stops_in_a_deleter_holds_few_objects)
{
    enum { MANY = 10 * DUE };
    pthread_t thread = start_and_stop_one();
    unsigned most = 0;

    for (unsigned i = 0; i < MANY; i++) {
        unsigned waits;

        retire(sizeof(struct retired), delete);
        waits = DUE + i + 1 - __atomic_load_n(&deleted, __ATOMIC_RELAXED);
        most = waits > most ? waits : most;
    }
    let_it_end(thread);
    assert_int_equal(prudence_hazard_reclaim(), 0);
    assert_int_equal(deleted, DUE + MANY);
    assert_in_range(most, DUE / 2, DUE + 16);
}

TEST(large_objects_have_a_bound_in_bytes)
{
    enum { MANY = 100, LARGE = 64 << 10 };
    pthread_t thread = start_and_stop_one();
    unsigned most = 0;

    prudence_hazard_reclaim(); /* all but what the stopped thread has taken */
    deleted = 0;
    for (unsigned i = 0; i < MANY; i++) {
        unsigned waits;

        retire(LARGE, delete);
        waits = i + 1 - __atomic_load_n(&deleted, __ATOMIC_RELAXED);
        most = waits > most ? waits : most;
    }
    let_it_end(thread);
    assert_int_equal(prudence_hazard_reclaim(), 0);
    assert_in_range(most, 8, 17);
}

/* What is named does not count, and a check does not come at each call. */
TEST(named_objects_do_not_count)
{
    enum { MANY = 2 * DUE };
    static struct prudence_hazard *slots[MANY];
    struct prudence_hazard_head *head;

    deleted = 0;
    for (unsigned i = 0; i < MANY; i++) {
        head = calloc(1, sizeof(struct retired));
        slots[i] = prudence_hazard_acquire();
        prudence_hazard_set(slots[i], (char *)head + i % sizeof(struct retired));
        prudence_hazard_retire(head, head, sizeof(struct retired), delete);
    }
    assert_int_equal(prudence_hazard_reclaim(), MANY);
    for (unsigned i = 0; i < MANY - 1; i++)
        retire(sizeof(struct retired), delete);
    assert_int_equal(deleted, 0);
    retire(sizeof(struct retired), delete);
    assert_int_equal(deleted, MANY);
    for (unsigned i = 0; i < MANY; i++)
        prudence_hazard_release(slots[i]);
    assert_int_equal(prudence_hazard_reclaim(), 0);
    assert_int_equal(deleted, 2 * MANY);
}

/* ---------------------------------------------------------------------------------------- names */

/* Behind more names than a check takes at a time. */
TEST(a_name_protects_objects_of_any_size)
{
    enum { BEFORE = 300, SIZES = 12 };
    static char block[1 << SIZES], elsewhere[BEFORE];
    static struct prudence_hazard_head heads[SIZES];
    struct prudence_hazard *slots[BEFORE], *slot;

    for (unsigned i = 0; i < BEFORE; i++) {
        slots[i] = prudence_hazard_acquire();
        prudence_hazard_set(slots[i], &elsewhere[i]);
    }
    slot = prudence_hazard_acquire();
    for (unsigned at = 0; at < 2; at++)
        for (unsigned i = 0; i < SIZES; i++) {
            size_t size = ((size_t)1 << i) + i % 2;

            prudence_hazard_set(slot, &block[at ? size - 1 : 0]);
            for (unsigned j = 0; j < SIZES; j++)
                prudence_hazard_retire(&heads[j], block + (j == i ? 0 : size), j == i ? size : 1,
                                       count_deleted);
            assert_int_equal(prudence_hazard_reclaim(), 1);
            prudence_hazard_reset(slot);
            assert_int_equal(prudence_hazard_reclaim(), 0);
        }
    prudence_hazard_release(slot);
    for (unsigned i = 0; i < BEFORE; i++)
        prudence_hazard_release(slots[i]);
}

/* --------------------------------------------------------------------------------------- misuse */

static void retire_head(struct prudence_hazard_head *head)
{
    prudence_hazard_retire(head, head, sizeof *head, count_deleted);
}

static int retire_again(void)
{
    static struct prudence_hazard_head head;

    prudence_option_set("check", "1");
    for (unsigned i = 0; i < 3; i++) {
        retire_head(&head);
        if (prudence_hazard_reclaim())
            return 1;
        prudence_option_set("check", i ? "1" : "0");
    }
    return 42;
}

/* The misuse matrix (tests/misuse) has the reports without check=1. */
TEST(a_head_that_is_retired_twice_is_reported)
{
    static struct prudence_hazard_head head, other;

    expect_death((prudence_option_set("check", "1"), retire_head(&head), retire_head(&head)),
                 "was retired before");
    expect_death((prudence_option_set("check", "1"), retire_head(&head), retire_head(&other),
                  retire_head(&head)),
                 "was retired before");
    expect_exit(42, retire_again(), "");
}

SUITE()
