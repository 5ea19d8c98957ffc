/* SPDX-License-Identifier: MIT */
/*
 * Random calls of several threads, one after another, against a model that says when each object
 * ends: at the call that removes the last date. The model states the thesis' rules anew, in the
 * plainest way. With eager collection each object's end is compared at every call; with lazy
 * collection none may end earlier, and all have ended after scm_collect().
 */
#include "support/scm_test.h"
#include "support/test_seed.h"

#define ACTORS  3
#define OBJECTS 60
#define DATES   200
#define STEPS   20000

struct date {
    int actor; /* -1: no date */
    bool global;
    uint64_t value;
};

struct subject {
    void *object; /* NULL if there is none */
    struct date dates[DATES];
    unsigned count;
};

struct model_thread {
    bool registered, blocked, ticked;
    uint64_t local, global; /* local and thread-global time */
};

static struct actor actors[ACTORS];
static struct model_thread threads[ACTORS];
static struct subject subjects[OBJECTS];
static uint64_t model_global;
static bool lazy;

static unsigned active_threads(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < ACTORS; i++)
        count += threads[i].registered && !threads[i].blocked;
    return count;
}

static void joins(unsigned actor)
{
    threads[actor].ticked = active_threads() > 0;
    threads[actor].registered = true;
    threads[actor].blocked = false;
}

static void ends_phase_if_all_have_ticked(void)
{
    for (unsigned i = 0; i < ACTORS; i++)
        if (threads[i].registered && !threads[i].blocked && !threads[i].ticked)
            return;
    if (!active_threads())
        return;
    model_global++;
    for (unsigned i = 0; i < ACTORS; i++)
        threads[i].ticked = false;
}

static bool has_expired(const struct date *date)
{
    const struct model_thread *thread = &threads[date->actor];

    return date->value < (date->global ? thread->global : thread->local);
}

/* Returns whether the model has no more date for the object. */
static bool is_over(const struct subject *subject)
{
    for (unsigned i = 0; i < subject->count; i++)
        if (!has_expired(&subject->dates[i]))
            return false;
    return subject->count > 0;
}

static void compare(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct subject *subject = &subjects[i];

        if (!subject->object)
            continue;
        if (!is_over(subject)) {
            assert_false(has_ended(subject->object));
            continue;
        }
        if (!lazy)
            assert_true(has_ended(subject->object));
        if (has_ended(subject->object) || !lazy)
            subject->object = NULL;
    }
    if (!lazy)
        end_count = 0;
}

static void refresh(unsigned actor, struct subject *subject)
{
    bool global = rand() % 2;
    unsigned extension = (unsigned)rand() % 20;
    const struct model_thread *thread = &threads[actor];

    if (subject->count == DATES)
        return;
    if (!subject->object) {
        subject->object = object_new();
        subject->count = 0;
    }
    if (global)
        assert_int_equal(global_refreshes(&actors[actor], subject->object, extension), 0);
    else
        assert_int_equal(refreshes(&actors[actor], subject->object, extension), 0);
    subject->dates[subject->count++] = (struct date){
        .actor = (int)actor,
        .global = global,
        .value = global ? thread->global + extension + 2 : thread->local + extension,
    };
}

static void tick(unsigned actor)
{
    assert_int_equal(does(&actors[actor], act_tick, NULL), 0);
    threads[actor].local++;
}

static void global_tick(unsigned actor)
{
    assert_int_equal(does(&actors[actor], act_global_tick, NULL), 0);
    if (threads[actor].ticked)
        return;
    threads[actor].ticked = true;
    threads[actor].global++;
    ends_phase_if_all_have_ticked();
}

static void block_or_resume(unsigned actor)
{
    if (threads[actor].blocked) {
        assert_int_equal(does(&actors[actor], act_resume, NULL), 0);
        joins(actor);
        return;
    }
    assert_int_equal(does(&actors[actor], act_block, NULL), 0);
    threads[actor].blocked = true;
    ends_phase_if_all_have_ticked();
}

/* Ends the thread and starts a new one instead, which is its heir, because no other thread
 * has registered. */
static void end_and_begin(unsigned actor)
{
    actor_end(&actors[actor]);
    if (!threads[actor].blocked) {
        threads[actor].registered = false;
        ends_phase_if_all_have_ticked();
    }
    threads[actor].registered = false;
    actor_start(&actors[actor]);
    does(&actors[actor], act_register, NULL);
    joins(actor);
}

static int act_collect(void *unused)
{
    return scm_collect();
}

/* Lets each thread collect its own expired objects; blocked ones must resume first. */
static void collect_and_compare(void)
{
    for (unsigned i = 0; i < ACTORS; i++) {
        if (threads[i].blocked)
            block_or_resume(i);
        assert_int_equal(does(&actors[i], act_collect, NULL), 0);
    }
    lazy = false;
    compare();
    lazy = true;
}

static void step(void)
{
    unsigned actor = (unsigned)rand() % ACTORS;
    struct subject *subject = &subjects[rand() % OBJECTS];
    int what = rand() % 100;

    if (what < 3)
        block_or_resume(actor);
    else if (what < 4)
        end_and_begin(actor);
    else if (threads[actor].blocked)
        return;
    else if (what < 50 && (!subject->object || !is_over(subject)))
        refresh(actor, subject);
    else if (what < 75)
        tick(actor);
    else
        global_tick(actor);
    if (!threads[actor].blocked)
        assert_int_equal(global_time(), model_global);
    compare();
    if (lazy && rand() % 50 == 0)
        collect_and_compare();
}

/* Moves local time, so that an epoch of stamps ends in the middle. */
static int act_jump(void *unused)
{
    if (!scm_self || !clock_is_empty(&scm_self->local))
        return 1;
    scm_self->local.now = STAMP_EPOCH - STEPS / 4 / ACTORS / 2;
    owner_detach_clock(&scm_self->local);
    return 0;
}

static void run(bool lazily, unsigned seed)
{
    lazy = lazily;
    srand(seed + (unsigned)test_seed(0) * 1000);
    collection(lazy ? "lazy" : "eager");
    memset(threads, 0, sizeof threads);
    memset(subjects, 0, sizeof subjects);
    for (unsigned i = 0; i < ACTORS; i++) {
        actor_start(&actors[i]);
        does(&actors[i], act_register, NULL);
        joins(i);
        assert_int_equal(does(&actors[i], act_jump, NULL), 0);
    }
    model_global = global_time();
    for (unsigned i = 0; i < STEPS; i++)
        step();
    for (unsigned i = 0; i < ACTORS; i++)
        actor_end(&actors[i]);
}

TEST(eager_is_as_the_model, fresh)
{
    run(false, 1);
}

TEST(lazy_is_never_earlier_and_collects_all, fresh)
{
    run(true, 2);
}

/* Other threads' clocks have no owner of stamps; owners of ended threads are reused. */
TEST(with_few_owners, fresh)
{
    scm_owners = 4;
    run(false, 3);
    scm_owners = STAMP_OWNERS;
}

SUITE(scm_test_uses())
