/* SPDX-License-Identifier: MIT */
/*
 * check=1 catches every refresh of a freed or deferred object at the call, and that of a guarded
 * one; watched objects expire as usual.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "support/scm_test.h"
#include "support/self.h"
#include "support/slab_test.h"

#include <prudence/rcu.h>

static void refresh_freed(void *object)
{
    prudence_free(object);
    scm_refresh(object, 1);
}

static void refresh_deferred(void *object)
{
    prudence_read_lock();
    prudence_free_deferred(object);
    scm_refresh(object, 1);
}

static void refresh_expired(void *object)
{
    scm_refresh(object, 0);
    scm_tick();
    scm_refresh(object, 0);
}

static void set_finalizer_of_freed(void *object)
{
    prudence_free(object);
    scm_set_finalizer(object, 0);
}

static void free_expired(void *object)
{
    scm_refresh(object, 0);
    scm_tick();
    scm_free(object);
}

static void free_short_term(void *object)
{
    scm_refresh(object, 0);
    scm_free(object);
}

static void *object(bool guarded)
{
    void *p = scm_malloc(50);

    assert_int_equal(slab_of(p)->alone, guarded);
    return p;
}

static void expect_calls_are_caught(bool guarded)
{
    expect_death(refresh_freed, object(guarded), "scm_refresh:", "is already free", NULL);
    expect_death(refresh_deferred, object(guarded), "scm_refresh:", "is already deferred", NULL);
    expect_death(refresh_expired, object(guarded), "scm_refresh:", "is already free", NULL);
    expect_death(set_finalizer_of_freed, object(guarded), "scm_set_finalizer:", "is already free",
                 NULL);
    expect_death(free_expired, object(guarded), "scm_free:", "already free", NULL);
    expect_death(free_short_term, object(guarded), "scm_free:", "is short-term memory", NULL);
}

TEST(every_late_call_is_caught)
{
    collection("eager");
    scm_register_finalizer(note_end);
    expect_calls_are_caught(true);
    while (slab_of(scm_malloc(50))->alone)
        ; /* uses up all pages for guarded objects */
    expect_calls_are_caught(false);
}

TEST(watched_objects_expire)
{
    for (unsigned deferred = 0; deferred < 2; deferred++) {
        fresh(state);
        prudence_option_set("scm_expired", deferred ? "deferred" : "free");
        for (unsigned i = 0; i < 1000; i++)
            assert_int_equal(scm_refresh(scm_malloc(1 + i * 50), i % 3), 0);
        ticks(3);
        assert_int_equal(mem_info().num_short_term, 0);
    }
    prudence_synchronize();
}

int main(int argc, char **argv)
{
    if (!getenv("AGAIN")) {
        setenv("AGAIN", "1", 1);
        setenv("PRUDENCE_OPTIONS", "check=1,guard=1,zero_on_free=1,trace=0", 1);
        self_exec(argv);
    }
    scm_test_uses();
    return suite_run(NULL, NULL);
}
