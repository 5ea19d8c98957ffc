/* SPDX-License-Identifier: MIT */
/*
 * Hazard pointers: what a slot protects and for how long, slots on demand, movable ones, ends of
 * threads, handlers, fork, memory that is missing, modes, deleters, and misuse.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>

#include <prudence/hazard.h>
#include <prudence/rcu.h>

#include "toolkit/domains/hazard_names.h"
#include "gp/user/reader_exit.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/slab_test.h"
#include "support/suite.h"
#include "support/threads.h"

static struct prudence_domain *domain;

static int set_up(void **state)
{
    domain = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    return domain == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(domain);
}

static bool is_over(prudence_gp_t cookie)
{
    for (unsigned i = 0; i < 4; i++)
        if (prudence_domain_poll_state(domain, cookie))
            return true;
    return false;
}

/* Returns how many of the objects no hazard pointer names; those that are named come last. */
static unsigned poll_of(void **objects, unsigned count, size_t size)
{
    return gp_poll_objects(domain, gp_snapshot(domain), objects, count, size, NULL);
}

static bool is_safe(void *object, size_t size)
{
    return poll_of(&object, 1, size) == 1;
}

/* ---------------------------------------------------------------------------------- protection */

TEST(a_grace_period_waits_for_what_was_named_and_for_no_later_name)
{
    char first, second;
    void *link = &first;
    struct prudence_hazard *hazard = prudence_hazard_acquire(), *other;
    prudence_gp_t cookie;

    assert_ptr_equal(prudence_hazard_protect(hazard, &link), &first);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    other = prudence_hazard_acquire();
    prudence_hazard_set(other, &second);
    assert_false(is_over(cookie));
    prudence_hazard_reset(hazard);
    assert_true(is_over(cookie));
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    prudence_hazard_set(other, &first); /* another name ends the protection, too */
    assert_true(is_over(cookie));
    prudence_hazard_release(other);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

TEST(try_protect_fails_if_the_link_has_changed)
{
    char first, second;
    void *link = &second, *wanted = &first;
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    assert_false(prudence_hazard_try_protect(hazard, &wanted, &link));
    assert_ptr_equal(wanted, &second);
    assert_true(is_safe(&first, 1));
    assert_true(is_safe(&second, 1)); /* a slot of a failed try names nothing */
    assert_true(prudence_hazard_try_protect(hazard, &wanted, &link));
    assert_false(is_safe(&second, 1));
    prudence_hazard_release(hazard);
    assert_true(is_safe(&second, 1));
}

TEST(any_address_in_an_object_protects_it_and_no_neighbour)
{
    static char block[4][64];
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    static const size_t inside[] = {0, 1, 63};

    for (unsigned i = 0; i < 3; i++) {
        void *objects[] = {block[0], block[1], block[2], block[3]};

        prudence_hazard_set(hazard, block[1] + inside[i]);
        assert_int_equal(poll_of(objects, 4, 64), 3);
        assert_ptr_equal(objects[3], block[1]);
    }
    prudence_hazard_release(hazard);
}

/* More names than a check takes at a time, and more than a round keeps. */
TEST(many_names)
{
    enum { MANY = 600 };
    static char block[2 * MANY];
    static struct prudence_hazard *hazards[MANY];
    void *objects[2 * MANY];
    prudence_gp_t cookie;

    for (unsigned i = 0; i < MANY; i++) {
        hazards[i] = prudence_hazard_acquire();
        assert_non_null(hazards[i]);
        for (unsigned j = 0; j < i; j++)
            assert_ptr_not_equal(hazards[i], hazards[j]);
        prudence_hazard_set(hazards[i], &block[2 * (MANY - 1 - i)]);
    }
    for (unsigned i = 0; i < 2 * MANY; i++)
        objects[i] = &block[i];
    assert_int_equal(poll_of(objects, 2 * MANY, 1), MANY);
    for (unsigned i = 0; i < 2 * MANY; i++)
        assert_int_equal(((char *)objects[i] - block) % 2 == 0, i >= MANY);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    for (unsigned i = 0; i < MANY; i++)
        prudence_hazard_release(hazards[i]);
    assert_true(is_over(cookie));
}

/* No moment has fewer names, and yet each protection ends. */
TEST(many_names_that_move_on)
{
    static char block[2 * HAZARD_WATCHED + 1];
    static struct prudence_hazard *hazards[sizeof block];
    prudence_gp_t cookie = prudence_domain_start_poll(domain);
    unsigned looks = 0;

    assert_true(is_over(cookie));
    for (unsigned i = 0; i < sizeof block; i++) {
        hazards[i] = prudence_hazard_acquire();
        prudence_hazard_set(hazards[i], &block[i]);
    }
    cookie = prudence_domain_start_poll(domain);
    for (; !is_over(cookie); looks++)
        for (unsigned i = 0; i < sizeof block; i++)
            prudence_hazard_set(hazards[i], &block[(i + looks + 1) % sizeof block]);
    assert_int_equal(looks, 3); /* a watch of all that it has room for, twice, and of the last */
    for (unsigned i = 0; i < sizeof block; i++)
        prudence_hazard_release(hazards[i]);
}

/* --------------------------------------------------------------------------------------- slots */

TEST(released_slots_are_used_again)
{
    struct prudence_hazard *hazards[3 * PRUDENCE_HAZARDS], *again;
    const struct prudence_hazards *self;

    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 3 * PRUDENCE_HAZARDS; i++)
            hazards[i] = prudence_hazard_acquire();
        for (unsigned i = 0; i < 3 * PRUDENCE_HAZARDS; i++)
            prudence_hazard_release(hazards[i]);
    }
    self = prudence_hazards_self;
    again = prudence_hazard_acquire();
    assert_ptr_equal(prudence_hazards_self, self);
    prudence_hazard_release(again);
    prudence_hazard_release(NULL);
    assert_true(hazard_chunks->used < 130); /* many_names() needed 86 */
}

static char movable_object;

static void *acquire_movable(void *unused)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire_movable();

    prudence_hazard_set(hazard, &movable_object);
    prudence_hazard_release(prudence_hazard_acquire());
    return hazard;
}

static void *release(void *hazard)
{
    prudence_hazard_release(hazard);
    return NULL;
}

static const struct prudence_hazards *record_of(struct prudence_hazard *hazard)
{
    return prudence_hazard_record_(hazard);
}

TEST(a_movable_slot_outlives_its_thread)
{
    struct prudence_hazard *hazard = in_thread(acquire_movable, NULL);

    assert_false(is_safe(&movable_object, 1));
    prudence_hazard_reset(hazard);
    prudence_hazard_set(hazard, &movable_object); /* any thread may use it */
    assert_false(is_safe(&movable_object, 1));
    assert_int_not_equal(record_of(hazard)->thread, 0);
    in_thread(release, hazard);
    assert_true(is_safe(&movable_object, 1));
    assert_int_equal(record_of(hazard)->thread, 0); /* its last slot came back */
}

static int32_t orphan(void)
{
    struct prudence_hazard *hazard = in_thread(acquire_movable, NULL);
    int32_t found = record_of(hazard)->thread;

    prudence_hazard_release(hazard);
    assert_int_equal(record_of(hazard)->thread, 0);
    return found;
}

/* Otherwise a thread that sleeps would free the later orphan, whose slot is out. */
TEST(each_orphan_has_a_number_of_its_own)
{
    int32_t first = orphan(), second = orphan();

    assert_true(first < 0);
    assert_true(second < 0);
    assert_int_not_equal(first, second);
}

/* A slot that another thread has released is free again once the record has no other. */
static void *take_back(void *unused)
{
    struct prudence_hazard *hazards[PRUDENCE_HAZARDS], *moved;
    unsigned found = 0;

    moved = prudence_hazard_acquire_movable();
    in_thread(release, moved);
    assert_null(moved->name);
    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++) {
        hazards[i] = prudence_hazard_acquire();
        found += hazards[i] == moved;
    }
    assert_int_equal(found, 1);
    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        prudence_hazard_release(hazards[i]);
    return NULL;
}

TEST(a_returned_slot_is_taken_back)
{
    in_thread(take_back, NULL);
}

/* ----------------------------------------------------------------------------------- rows */

static void *hold_a_row(void *unused)
{
    struct prudence_hazard *singles[2], *row, *other;

    for (unsigned i = 0; i < 2; i++)
        singles[i] = prudence_hazard_acquire();
    row = prudence_hazard_acquire_row(4);
    assert_ptr_equal(record_of(row), record_of(row + 3));
    assert_ptr_equal(record_of(row), record_of(singles[0]));
    assert_int_equal(record_of(row)->free, 0x40); /* of seven */
    other = prudence_hazard_acquire_row(2);
    assert_ptr_not_equal(record_of(other), record_of(row)); /* one slot remains */
    prudence_hazard_release(other);
    prudence_hazard_release(other + 1);
    prudence_hazard_release(singles[1]);
    prudence_hazard_release(row + 2); /* 2 and 6 would be two, but not side by side */
    other = prudence_hazard_acquire_row(2);
    assert_ptr_not_equal(record_of(other), record_of(row));
    for (unsigned i = 0; i < 2; i++)
        prudence_hazard_release(other + i);
    for (unsigned i = 0; i < 4; i++)
        if (i != 2)
            prudence_hazard_release(row + i);
    prudence_hazard_release(singles[0]);
    return NULL;
}

TEST(the_slots_of_a_row_lie_side_by_side)
{
    in_thread(hold_a_row, NULL);
}

TEST(a_row_has_one_slot_at_least_and_no_more_than_a_record)
{
    struct prudence_hazard *row;

    errno = 0;
    assert_null(prudence_hazard_acquire_row(0));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(prudence_hazard_acquire_row(PRUDENCE_HAZARDS + 1));
    assert_int_equal(errno, EINVAL);
    row = prudence_hazard_acquire_row(PRUDENCE_HAZARDS);
    assert_ptr_equal(row, record_of(row)->slots);
    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        prudence_hazard_release(row + i);
}

TEST(a_grace_period_follows_a_name_up_its_row)
{
    char object, next;
    struct prudence_hazard *row = prudence_hazard_acquire_row(3);
    prudence_gp_t cookie;

    prudence_hazard_set(row, &object);
    cookie = prudence_domain_start_poll(domain);
    assert_false(is_over(cookie));
    for (unsigned i = 1; i < 3; i++) {
        prudence_hazard_set(row + i, &object);
        prudence_hazard_set(row + i - 1, &next);
        assert_false(is_over(cookie));
        assert_false(is_safe(&object, sizeof object));
    }
    prudence_hazard_reset(row + 2);
    assert_true(is_over(cookie));
    assert_true(is_safe(&object, sizeof object));
    for (unsigned i = 0; i < 3; i++)
        prudence_hazard_release(row + i);
}

static void *acquire_a_row(void *unused)
{
    struct prudence_hazard *row = prudence_hazard_acquire_row(4);

    prudence_hazard_set(row + 1, &movable_object);
    return row;
}

TEST(a_row_outlives_its_thread)
{
    struct prudence_hazard *row = in_thread(acquire_a_row, NULL);

    assert_false(is_safe(&movable_object, 1));
    for (unsigned i = 0; i < 4; i++)
        prudence_hazard_release(row + i);
    assert_true(is_safe(&movable_object, 1));
    assert_int_equal(record_of(row)->thread, 0);
}

/* ------------------------------------------------------------------------- ends of threads */

static void *protect_and_end(void *object)
{
    prudence_hazard_set(prudence_hazard_acquire(), object);
    return NULL;
}

/* The thread is gone a moment after it can be joined. */
static bool becomes_safe(void *object)
{
    for (unsigned i = 0; i < 1000; i++) {
        if (is_safe(object, 1))
            return true;
        pause_ms(1);
    }
    return false;
}

static int end_inside(void)
{
    static char object;

    in_thread(protect_and_end, &object);
    return becomes_safe(&object) ? 42 : 1;
}

TEST(a_thread_that_ends_protects_no_more_and_is_reported)
{
    expect_exit(42, end_inside(), "");
    assert_int_equal(said("ends while its slot"), 1);
}

/* The end of a thread whose hook could not be armed is found by a check. */
static int end_unnoticed(void)
{
    static char object;

    reader_keys_without_memory = 0;
    in_thread(protect_and_end, &object);
    return becomes_safe(&object) ? 42 : 1;
}

TEST(an_end_that_goes_unnoticed_is_found)
{
    expect_exit(42, end_unnoticed(), "");
    assert_int_equal(said("ends while its slot"), 1);
}

static pthread_key_t key;

static void release_late(void *hazard)
{
    prudence_hazard_release(hazard);
}

static void *leave_to_destructor(void *object)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    prudence_hazard_set(hazard, object);
    pthread_setspecific(key, hazard);
    return NULL;
}

static int end_in_destructor(void)
{
    static char object;

    if (pthread_key_create(&key, release_late))
        return 1;
    in_thread(leave_to_destructor, &object);
    return is_safe(&object, 1) ? 42 : 1;
}

TEST(a_destructor_may_release)
{
    expect_exit(42, end_in_destructor(), "");
    assert_int_equal(said("ends while"), 0);
}

/* ------------------------------------------------------------------------------------- handlers */

static void *handler_link;
static struct prudence_hazard *handler_slot;
static bool handler_releases;

static void handler(int number)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    prudence_hazard_protect(hazard, &handler_link);
    handler_slot = hazard;
    if (handler_releases)
        prudence_hazard_release(hazard);
}

static void *first_slot_in_a_handler(void *object)
{
    handler_link = object;
    handler_releases = false;
    raise(SIGUSR1);
    assert_false(is_safe(object, 1));
    prudence_hazard_release(handler_slot);
    assert_true(is_safe(object, 1));
    return NULL;
}

TEST(handlers_protect)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    static char object;

    signal(SIGUSR1, handler);
    in_thread(first_slot_in_a_handler, &object);
    handler_releases = true;
    prudence_hazard_set(hazard, &object);
    raise(SIGUSR1);
    assert_ptr_not_equal(handler_slot, hazard);
    assert_false(is_safe(&object, 1));
    prudence_hazard_release(hazard);
    signal(SIGUSR1, SIG_DFL);
}

/* ----------------------------------------------------------------------------------------- fork */

static char of_parent, of_other, of_moved;

static void *protect_until_told(void *reader_at)
{
    struct held_reader *reader = reader_at;
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    prudence_hazard_set(hazard, &of_other);
    sem_post(&reader->inside);
    while (sem_wait(&reader->leave))
        ;
    prudence_hazard_release(hazard);
    return NULL;
}

static int look_in_child(void *own)
{
    int wrong =
        (!is_safe(&of_other, 1)) | (is_safe(&of_parent, 1) << 1) | (is_safe(&of_moved, 1) << 2);

    prudence_hazard_release(own);
    wrong |= !is_safe(&of_parent, 1) << 3;
    prudence_hazard_set(prudence_hazard_acquire(), &of_other);
    wrong |= is_safe(&of_other, 1) << 4;
    return wrong ? wrong : 42;
}

static void *acquire_for_other(void *unused)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire_movable();

    prudence_hazard_set(hazard, &of_moved);
    return hazard;
}

TEST(a_forked_child_has_its_own_slots_and_the_movable_ones)
{
    struct held_reader reader;
    struct prudence_hazard *own = prudence_hazard_acquire();
    struct prudence_hazard *moved = in_thread(acquire_for_other, NULL);
    pthread_t thread;

    prudence_hazard_set(own, &of_parent);
    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    thread = thread_start(protect_until_told, &reader);
    while (sem_wait(&reader.inside))
        ;
    assert_child(look_in_child, own);
    assert_false(is_safe(&of_other, 1));
    sem_post(&reader.leave);
    pthread_join(thread, NULL);
    assert_true(is_safe(&of_other, 1));
    prudence_hazard_release(moved);
    prudence_hazard_release(own);
}

/* --------------------------------------------------------------------------------------- memory */

static int acquire_all(void)
{
    unsigned slots = 0;

    memory_fail(0, UINT32_MAX);
    errno = 0;
    while (prudence_hazard_acquire())
        slots++;
    if (errno != ENOMEM || slots < (HAZARDS_IN_CHUNK - 2) * PRUDENCE_HAZARDS)
        return 1;
    memory_succeed();
    return prudence_hazard_acquire() ? 42 : 2;
}

TEST(slots_without_memory)
{
    expect_exit(42, acquire_all(), "");
}

/* ---------------------------------------------------------------------------------------- modes */

static bool all_fenced(void)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    bool fenced = hazard->fenced;

    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        assert_int_equal(record_of(hazard)->slots[i].fenced, fenced);
    assert_int_equal(hazard_slots_are_fenced(), fenced);
    prudence_hazard_release(hazard);
    return fenced;
}

static void *all_fenced_here(void *unused)
{
    return (void *)(uintptr_t)all_fenced();
}

static int change_mode(void *unused)
{
    static char object;
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    for (unsigned i = 0; i < 3; i++) {
        prudence_option_set("reader_mode", "fenced");
        if (!all_fenced() || !in_thread(all_fenced_here, NULL))
            return 1;
        prudence_hazard_set(hazard, &object);
        prudence_option_set("reader_mode", "auto");
        if (is_safe(&object, 1))
            return 2;
        if (os_membarrier_available() && (all_fenced() || in_thread(all_fenced_here, NULL)))
            return 3;
        prudence_hazard_reset(hazard);
        if (!is_safe(&object, 1))
            return 4;
    }
    return 42;
}

TEST(modes_change_at_run_time)
{
    assert_child(change_mode, NULL);
}

/* ------------------------------------------------------------------------------------- deleters */

struct retired {
    struct prudence_hazard_head head;
    char bytes[48];
};

static unsigned deleted;
static struct retired *retires_another;

static void delete (struct prudence_hazard_head *head)
{
    struct retired *another = retires_another;

    retires_another = NULL;
    deleted++;
    if (another)
        prudence_hazard_retire(&another->head, another, sizeof *another, delete);
}

static void retire(struct retired *object)
{
    prudence_hazard_retire(&object->head, object, sizeof *object, delete);
}

/* So that a grace period is worth its barrier, as in a memb domain. */
TEST(the_cost_of_a_barrier_is_known)
{
    struct prudence_domain *own = prudence_domain_create("own", PRUDENCE_DOMAIN_HAZARD, NULL);
    uint64_t assumed = gp_cost(own);

    assert_non_null(own);
    assert_true(!gp_cost(own) || assumed >= 1000);
    for (int i = 0; i < 50; i++)
        assert_int_equal(prudence_domain_synchronize(own), 0);
    assert_true(!gp_cost(own) || (gp_cost(own) >= 100 && gp_cost(own) != assumed));
    assert_int_equal(prudence_domain_destroy(own), 0);
}

TEST(a_deleter_waits_for_the_name_and_may_retire)
{
    static struct retired objects[3];
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    deleted = 0;
    prudence_hazard_set(hazard, &objects[1].bytes[7]);
    retires_another = &objects[2];
    retire(&objects[0]);
    retire(&objects[1]);
    assert_int_equal(deleted, 0);
    assert_int_equal(prudence_hazard_reclaim(),
                     2); /* the named one, and the one retired just now */
    assert_int_equal(deleted, 1);
    assert_int_equal(prudence_hazard_reclaim(), 1);
    assert_int_equal(deleted, 2);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_hazard_reclaim(), 0);
    assert_int_equal(deleted, 3);
}

/* With a name that stays, the number of waiting objects has a bound. */
TEST(retired_objects_have_a_bound)
{
    enum { MANY = 20000 };
    static struct retired objects[MANY];
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    unsigned most = 0;

    deleted = 0;
    prudence_hazard_set(hazard, &objects[0]);
    for (unsigned i = 0; i < MANY; i++) {
        retire(&objects[i]);
        if (i + 1 - deleted > most)
            most = i + 1 - deleted;
    }
    assert_true(most <= 1025);
    assert_int_equal(prudence_hazard_reclaim(), 1);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_hazard_reclaim(), 0);
    assert_int_equal(deleted, MANY);
}

/* --------------------------------------------------------------------------------------- misuse */

static int read_in_a_section(void)
{
    prudence_domain_read_lock(domain);
    return 0;
}

static int release_of_another(void)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    in_thread(release, hazard);
    return 0;
}

TEST(misuse_is_reported)
{
    expect_death(read_in_a_section(), "domain 'hazards' has no sections");
    expect_death(release_of_another(), "acquire it by prudence_hazard_acquire_movable");
}

TEST(a_thread_does_not_wait_for_its_own_name)
{
    char object;
    struct prudence_hazard *hazard = prudence_hazard_acquire();

    prudence_hazard_set(hazard, &object);
    assert_int_equal(prudence_domain_synchronize(domain), EDEADLK);
    prudence_hazard_release(hazard);
    assert_int_equal(prudence_domain_synchronize(domain), 0);
}

SUITE_BETWEEN(set_up, tear_down)
