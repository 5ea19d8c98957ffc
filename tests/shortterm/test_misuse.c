/* SPDX-License-Identifier: MIT */
/*
 * Misuse of threads, clocks and extensions is reported, returns an error number, and changes
 * nothing. A dead object in a CPU's cache is found at its first date. The misuse matrix
 * (tests/misuse) has other misuse of pointers.
 */
#include "support/scm_test.h"
#include "support/slab_test.h"

#define DEAD_MOST 16

/* An object whose slab gets its expiry counts before or after the object dies, and others that
 * die after it. */
struct death {
    bool counts_first, deferred;
    unsigned others;
    void *object, *more[DEAD_MOST];
};

static void dies(const struct death *death, void *object)
{
    if (death->deferred)
        prudence_free_deferred(object);
    else
        prudence_free(object);
}

static void refresh_when_dead(const struct death *death)
{
    if (death->counts_first) {
        scm_refresh(death->more[0], 0);
        ticks(2);
    }
    dies(death, death->object);
    for (unsigned i = 1; i <= death->others; i++)
        dies(death, death->more[i]);
    scm_refresh(death->object, 1);
    os_report("not at the call");
}

/* The object was freed or deferred, and is in a CPU's cache: found at its first date. */
TEST(freed_objects_in_caches, fresh)
{
    static const unsigned others[] = {0, 1, DEAD_MOST - 1};
    struct death death;

    death.object = scm_malloc(208);
    for (unsigned i = 0; i < DEAD_MOST; i++)
        death.more[i] = scm_malloc(208);
    for (unsigned i = 0; i < 12; i++) {
        death.counts_first = i & 1;
        death.deferred = i & 2;
        death.others = others[i / 4];
        expect_death(refresh_when_dead(&death), "scm_refresh: ",
                     death.deferred ? "is already deferred and not yet safe" : "is already free");
    }
    scm_free(death.object);
    for (unsigned i = 0; i < DEAD_MOST; i++)
        scm_free(death.more[i]);
}

/* A free's mark stays when the object is allocated again, and causes no report. */
TEST(reused_objects_are_no_suspects, fresh)
{
    void *objects[8];

    for (unsigned round = 0; round < 8; round++) {
        for (unsigned i = 0; i < 8; i++)
            objects[i] = scm_malloc(224);
        for (unsigned i = 0; i < 8; i++) {
            if ((i + round) % 3)
                assert_int_equal(scm_refresh(objects[i], round % 2), 0);
            else if (i % 2)
                prudence_free_deferred(objects[i]);
            else
                prudence_free(objects[i]);
        }
        ticks(3);
        prudence_synchronize();
    }
    assert_int_equal(mem_info().num_dates, 0);
}

/* Plays a lost refresh, one that came while another thread's date, the object's last, ended. */
TEST(a_date_that_is_not_counted, fresh)
{
    void *object = scm_malloc(100);
    struct slab *slab = slab_known(object);
    char pointer[32];
    uint32_t *word;

    assert_int_equal(scm_refresh(object, 0), 0);
    assert_int_equal(scm_refresh(object, 1), 0);
    word = &expiry_counts_in(slab)[slab_index(slab, object)].word;
    (*word)--;
    snprintf(pointer, sizeof pointer, "%p", object);
    expect_death(ticks(3), "an expiration date of", pointer, "was not counted");
    (*word)++;
    ticks(2);
}

/* Such extensions are refused and reported; the option can be changed at any time. */
TEST(extensions_beyond_the_maximum, fresh)
{
    void *object = object_new();
    struct scm_clock *clock = scm_clock_create();

    assert_int_equal(prudence_option_set("scm_max_extension", "10"), 0);
    assert_int_equal(scm_refresh(object, 11), ERANGE);
    assert_int_equal(scm_global_refresh(object, 11), ERANGE);
    assert_int_equal(scm_clock_refresh(clock, object, UINT32_MAX), ERANGE);
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(scm_refresh(object, 10), 0);
    assert_int_equal(scm_refresh(object, 11), ERANGE);
    ticks(11);
    assert_true(has_ended(object)); /* the refused call changed nothing */
    assert_int_equal(scm_global_refresh(object = object_new(), 10), 0);
    assert_int_equal(scm_clock_refresh(clock, object, 10), 0);
    assert_int_equal(prudence_option_set("scm_max_extension", "0"), 0);
    assert_int_equal(scm_refresh(object, 1), ERANGE);
    assert_int_equal(scm_refresh(object, 0), 0);
    assert_int_equal(prudence_option_set("scm_max_extension", "1048577"), EINVAL);
    assert_int_equal(prudence_option_set("scm_max_extension", "-1"), EINVAL);
    assert_int_equal(prudence_option_set("scm_max_extension", "1048576"), 0);
    assert_int_equal(scm_refresh(object, 1048576), 0);
    assert_int_equal(scm_refresh(object, 1048577), ERANGE);
    ticks(1048576);
    assert_false(has_ended(object));
    ticks(1);
    global_ticks(20);
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_true(has_ended(object));
}

static int act_everything(void *object)
{
    struct scm_clock *clock = scm_clock_create();

    if (scm_block_thread() || scm_block_thread() != EPERM || scm_refresh(object, 1) != EPERM ||
        scm_global_refresh(object, 1) != EPERM || scm_tick() != EPERM ||
        scm_global_tick() != EPERM || scm_collect() != EPERM || scm_clock_tick(clock) != EPERM ||
        scm_clock_refresh(clock, object, 1) != EPERM || scm_clock_destroy(clock) != EPERM ||
        scm_clock_create() || errno != EPERM)
        return 1;
    return scm_resume_thread() || scm_resume_thread() != EPERM || scm_clock_destroy(clock);
}

/* "A blocking thread cannot perform any short-term memory operations." */
TEST(a_blocked_thread_may_do_nothing, fresh)
{
    struct actor actor;
    void *object = scm_malloc(16);

    actor_start(&actor);
    assert_int_equal(does(&actor, act_everything, object), 0);
    actor_end(&actor);
    assert_int_equal(mem_info().num_dates, 0);
    scm_free(object);
}

TEST(a_thread_that_takes_no_part_cannot_block, fresh)
{
    assert_int_equal(scm_block_thread(), EINVAL);
    assert_int_equal(scm_resume_thread(), EINVAL);
    assert_int_equal(scm_unregister_thread(), 0);
}

static void tick_absently(void *clock)
{
    void *object = scm_malloc(16);

    for (unsigned i = 0; i < 3; i++)
        if (scm_tick() != EINVAL || scm_global_tick() != EINVAL || scm_collect() != EINVAL ||
            scm_clock_tick(clock) != EINVAL || scm_clock_refresh(clock, object, 1) != EINVAL ||
            scm_clock_destroy(clock) != EINVAL || mem_info().threads != 1)
            abort();
    if (scm_refresh(object, 0) || scm_tick() || scm_unregister_thread() || scm_tick() != EINVAL)
        abort();
}

static void *absent_thread(void *clock)
{
    tick_absently(clock);
    return NULL;
}

/* Two threads that take no part are each named once; the first again, after it has taken part. */
static void absent_threads(void)
{
    struct scm_clock *clock = scm_clock_create();
    pthread_t thread;

    if (pthread_create(&thread, NULL, absent_thread, clock) || pthread_join(thread, NULL) ||
        scm_clock_tick(clock) || scm_unregister_thread() || scm_global_tick() != EINVAL)
        abort();
}

/* A tick of a thread that takes no part has no effect, does not register it, and is reported
 * once. */
TEST(a_thread_that_takes_no_part_has_nothing_to_tick, fresh)
{
    expect_survival(absent_threads(), "scm_tick: called by a thread that takes no part",
                    "scm_global_tick: called by a thread that takes no part");
    assert_int_equal(said("takes no part in short-term memory"), 3);
}

static int act_with_clock(void *clock)
{
    void *object = scm_malloc(16);
    int wrong = scm_register_thread() || scm_clock_refresh(clock, object, 1) != EPERM ||
                scm_clock_tick(clock) != EPERM || scm_clock_destroy(clock) != EPERM;

    scm_free(object);
    return wrong;
}

TEST(clocks_of_others_and_none, fresh)
{
    struct scm_clock *clock = scm_clock_create();
    void *object = scm_malloc(16);
    struct actor actor;

    actor_start(&actor);
    assert_int_equal(does(&actor, act_with_clock, clock), 0);
    actor_end(&actor);
    assert_int_equal(scm_clock_refresh(NULL, object, 1), EINVAL);
    assert_int_equal(scm_clock_tick(NULL), EINVAL);
    assert_int_equal(scm_clock_destroy(NULL), EINVAL);
    assert_null(scm_clock_create_realtime(0));
    assert_int_equal(errno, EINVAL);
    assert_null(scm_clock_create_realtime(86400001));
    assert_int_equal(scm_clock_destroy(clock), 0);
    scm_free(object);
}

TEST(unknown_finalizers, fresh)
{
    void *object = scm_malloc(16);

    assert_int_equal(scm_set_finalizer(object, 31), EINVAL);
    assert_int_equal(scm_set_finalizer(object, 32), EINVAL);
    assert_int_equal(scm_set_finalizer(object, -2), EINVAL);
    scm_free(object);
}

/* An object has the most dates possible; one more is refused. */
TEST(too_many_dates, fresh)
{
    void *object = object_new();
    struct slab *slab = slab_known(object);
    struct scm_clock *clock = scm_clock_create();

    assert_int_equal(scm_refresh(object, 0), 0);
    add_relaxed(&expiry_counts_in(slab)[slab_index(slab, object)].word, EXPIRY_COUNT_MAX - 2);
    assert_int_equal(scm_clock_refresh(clock, object, 1), 0);
    assert_int_equal(scm_clock_refresh(clock, object, 2), EOVERFLOW);
    assert_int_equal(scm_global_refresh(object, 2), EOVERFLOW);
    assert_int_equal(scm_refresh(object, 1), 0); /* moves a date, and adds none */
    assert_int_equal(mem_info().num_dates, 2);
    sub_relaxed(&expiry_counts_in(slab)[slab_index(slab, object)].word, EXPIRY_COUNT_MAX - 2);
    ticks(1);
    assert_int_equal(scm_clock_destroy(clock), 0);
    assert_false(has_ended(object));
    ticks(1);
    assert_true(has_ended(object));
}

/* Suspects are searched on this CPU. */
SUITE(scm_test_uses(), pin_thread())
