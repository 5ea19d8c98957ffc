/* SPDX-License-Identifier: MIT */
/*
 * Support for tests of short-term memory: objects that report their end, and threads that make one
 * call after another as the test says, so that tests with several threads are deterministic.
 */
#ifndef TESTS_SUPPORT_SCM_TEST_H
#define TESTS_SUPPORT_SCM_TEST_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/scm.h>

#include "shortterm/scm.h"
#include "toolkit/domains/phases.h"
#include "support/actor.h"
#include "support/suite.h"

#define ENDS_MAX 4096

/* Objects freed after their last date, in order. */
static void *ended_objects[ENDS_MAX];
static unsigned end_count;

static int note_end(void *object)
{
    ended_objects[end_count++ % ENDS_MAX] = object;
    return 0;
}

static inline int witness(void)
{
    static int number = -1;

    if (number < 0)
        number = scm_register_finalizer(note_end);
    return number;
}

/* Returns a new object that reports its end. */
static inline void *object_new(void)
{
    void *object = scm_malloc(48);

    assert_non_null(object);
    /* The new object may reuse the address of one that ended. */
    for (unsigned i = 0; i < end_count && i < ENDS_MAX; i++)
        if (ended_objects[i] == object)
            ended_objects[i] = NULL;
    assert_int_equal(scm_set_finalizer(object, witness()), 0);
    return object;
}

static inline bool has_ended(const void *object)
{
    for (unsigned i = 0; i < end_count && i < ENDS_MAX; i++)
        if (ended_objects[i] == object)
            return true;
    return false;
}

static inline struct scm_mem_info mem_info(void)
{
    struct scm_mem_info info;

    scm_get_mem_info(&info);
    return info;
}

static inline struct scm_region_info region_info(void)
{
    struct scm_region_info info;

    scm_get_region_info(&info);
    return info;
}

/* Holds whichever threads allocated and freed their pages. */
static inline void expect_no_descriptors(void)
{
    assert_int_equal(mem_info().overhead, scm_meta_bytes + expiry_counts_bytes());
}

/* Registers this thread if necessary, and ticks. */
static inline void ticks(unsigned count)
{
    assert_int_equal(scm_register_thread(), 0);
    while (count--)
        assert_int_equal(scm_tick(), 0);
}

static inline void global_ticks(unsigned count)
{
    assert_int_equal(scm_register_thread(), 0);
    while (count--)
        assert_int_equal(scm_global_tick(), 0);
}

static inline uint64_t global_time(void)
{
    return gp_phases_ended(scm_phases);
}

static inline void collection(const char *value)
{
    assert_int_equal(prudence_option_set("scm_collection", value), 0);
}

/* Starts every test afresh: ends all dates given by this thread or by earlier threads. */
static inline int fresh(void **state)
{
    (void)state;
    collection("eager");
    assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
    assert_int_equal(prudence_option_set("scm_max_extension", "4095"), 0);
    while (scm_orphans.next != &scm_orphans || mem_info().num_dates) {
        scm_register_thread();
        for (unsigned i = 0; i < 70000 && mem_info().num_dates; i++) {
            scm_tick();
            scm_global_tick();
        }
        if (scm_orphans.next == &scm_orphans)
            break;
        scm_unregister_thread();
        if (mem_info().num_dates == 0)
            break;
    }
    scm_unregister_thread();
    end_count = 0;
    return 0;
}

/* --- calls for actors --- */

struct refreshing {
    void *object;
    unsigned extension;
};

static int act_refresh(void *argument)
{
    struct refreshing *what = argument;

    return scm_refresh(what->object, what->extension);
}

static int act_global_refresh(void *argument)
{
    struct refreshing *what = argument;

    return scm_global_refresh(what->object, what->extension);
}

static int act_tick(void *unused)
{
    (void)unused;
    return scm_tick();
}

static int act_global_tick(void *unused)
{
    (void)unused;
    return scm_global_tick();
}

static int act_register(void *unused)
{
    (void)unused;
    return scm_register_thread();
}

static int act_unregister(void *unused)
{
    (void)unused;
    return scm_unregister_thread();
}

static int act_block(void *unused)
{
    (void)unused;
    return scm_block_thread();
}

static int act_resume(void *unused)
{
    (void)unused;
    return scm_resume_thread();
}

static inline int refreshes(struct actor *actor, void *object, unsigned extension)
{
    return does(actor, act_refresh, &(struct refreshing){object, extension});
}

static inline int global_refreshes(struct actor *actor, void *object, unsigned extension)
{
    return does(actor, act_global_refresh, &(struct refreshing){object, extension});
}

/* Refers to all calls, so that a test need not use all of them. */
static inline void scm_test_uses(void)
{
    (void)act_tick;
    (void)act_global_tick;
    (void)act_register;
    (void)act_unregister;
    (void)act_block;
    (void)act_resume;
}

#endif /* TESTS_SUPPORT_SCM_TEST_H */
