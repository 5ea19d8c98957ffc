/* SPDX-License-Identifier: MIT */
/*
 * A wait for an object that a movable slot of the waiting thread names. No record says that the
 * thread still has the slot, so the wait is not refused: it is reported as a stall. The end of a
 * cache in a destructor of C++ does not wait.
 */
#include <errno.h>

#include <prudence/call.h>
#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "support/patience.h"
#include "support/suite.h"

static struct prudence_domain *hazards, *both;
static const void *reported;
static unsigned reports;

static void note_stall(const struct prudence_stall *stall, void *argument)
{
    reported = stall->object;
    reports++;
}

static int set_up(void **state)
{
    struct prudence_domain *members[] = {prudence_default_domain(), NULL};

    prudence_stall_hook_set(note_stall, NULL);
    members[1] = hazards = prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    both = prudence_domain_create_set("both", members, 2);
    return both == NULL;
}

static int tear_down(void **state)
{
    return prudence_domain_destroy(both) || prudence_domain_destroy(hazards);
}

static unsigned destroyed;

static void destruct(void *object, void *context)
{
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_SEQ_CST);
}

/* The four caches: without a destructor and with one, in the domain and in the set. */
static struct prudence_cache *cache_of(unsigned which)
{
    struct prudence_cache_attr attr = {.size = sizeof attr,
                                       .domain = which % 2 ? both : hazards,
                                       .destructor = which / 2 ? destruct : NULL};

    return prudence_cache_create("named", 64, &attr);
}

static struct prudence_hazard *name_and_defer(struct prudence_hazard *slot, void *object)
{
    prudence_hazard_set(slot, object);
    prudence_free_deferred(object);
    return slot;
}

/* As when a hazard_pointer is declared before the cache. A cache that is gone is no longer a user
 * of the domain. */
static void end_later(unsigned which, struct prudence_hazard *slot)
{
    struct prudence_domain *domain = prudence_domain_create("own", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .domain = domain, .destructor = which ? destruct : NULL};
    struct prudence_cache *cache = prudence_cache_create("named", 64, &attr);

    destroyed = 0;
    name_and_defer(slot, prudence_cache_alloc(cache));
    assert_int_equal(prudence_cache_destroy_later(cache), 0);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    prudence_hazard_release(slot);
    while (prudence_domain_destroy(domain))
        prudence_barrier();
    assert_int_equal(__atomic_load_n(&destroyed, __ATOMIC_SEQ_CST), which);
}

TEST(a_cache_ends_later)
{
    for (unsigned i = 0; i < 2; i++) {
        end_later(i, prudence_hazard_acquire_movable());
        end_later(i, prudence_hazard_acquire());
    }
}

/* The timeout is far shorter than the wait. */
TEST(a_barrier_reports_it)
{
    assert_int_equal(prudence_option_set("stall_timeout", "1us"), 0);
    for (unsigned i = 0; i < 4; i++) {
        struct prudence_cache *cache = cache_of(i);
        void *object = prudence_cache_alloc(cache);
        struct prudence_hazard *slot = name_and_defer(prudence_hazard_acquire_movable(), object);

        reports = 0;
        reported = NULL;
        assert_int_equal(prudence_cache_barrier_timed(cache, 100000000), ETIMEDOUT);
        assert_ptr_equal(reported, object);
        assert_true(reports > 0);
        prudence_hazard_release(slot);
        assert_int_equal(prudence_cache_destroy(cache), 0);
    }
}

SUITE_BETWEEN(set_up, tear_down, alarm(patience(10)))
