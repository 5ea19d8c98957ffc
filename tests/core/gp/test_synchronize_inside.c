/* SPDX-License-Identifier: MIT */
/* A thread that would wait for itself gets an error that names the place, never a deadlock. */
#define _GNU_SOURCE

#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"

enum way { PLAIN, EXPEDITED, CONDITIONAL };

static __attribute__((noinline)) int synchronize_inside(void *argument)
{
    enum way way = *(enum way *)argument;

    prudence_read_lock();
    if (way == PLAIN)
        prudence_synchronize();
    else if (way == EXPEDITED)
        prudence_synchronize_expedited();
    else
        prudence_gp_cond_synchronize(prudence_gp_start_poll());
    return 0;
}

/* The message names an address inside the caller. */
static void assert_names_the_caller(const struct child_result *result, uintptr_t function)
{
    const char *place = strstr(result->output, "called from 0x");
    uintptr_t address;

    assert_non_null(place);
    address = (uintptr_t)strtoull(place + strlen("called from "), NULL, 16);
    assert_in_range(address, function, function + 4096);
}

TEST(each_kind_aborts_with_the_callers_address)
{
    static const char *const names[] = {"prudence_synchronize", "prudence_synchronize_expedited",
                                        "prudence_gp_cond_synchronize"};

    for (enum way way = PLAIN; way <= CONDITIONAL; way++) {
        expect_death(synchronize_inside(&way), names[way]);
        assert_names_the_caller(&last_child, (uintptr_t)synchronize_inside);
    }
}

static __attribute__((noinline)) int synchronize_inside_another(void *unused)
{
    prudence_domain_read_lock(prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL));
    prudence_synchronize();
    return 0;
}

static int synchronize_online(void)
{
    prudence_qsbr_online(prudence_domain_create("other", PRUDENCE_DOMAIN_QSBR, NULL));
    prudence_synchronize();
    return 0;
}

TEST(so_it_is_in_a_section_of_any_domain)
{
    expect_death(synchronize_inside_another(NULL), "");
    assert_names_the_caller(&last_child, (uintptr_t)synchronize_inside_another);
    expect_death(synchronize_online(), "");
}

/* One calling place; the use of the result prevents a tail call. */
static __attribute__((noinline)) int synchronize_here(struct prudence_domain *domain)
{
    return -prudence_domain_synchronize(domain);
}

/* Must differ from synchronize_here(), or the compiler merges the two places. */
static __attribute__((noinline)) bool is_refused_there(struct prudence_domain *domain)
{
    return prudence_domain_synchronize(domain) == EDEADLK;
}

static int domain_synchronize_inside(void)
{
    struct prudence_domain *domain = prudence_domain_create("mine", PRUDENCE_DOMAIN_MEMB, NULL);
    int refused = 0;

    prudence_domain_read_lock(domain);
    for (unsigned i = 0; i < 1000; i++)
        refused += synchronize_here(domain) == -EDEADLK;
    refused += synchronize_here(prudence_default_domain()) == -EDEADLK;
    refused += is_refused_there(domain);
    prudence_domain_read_unlock(domain);
    return refused == 1002 && synchronize_here(domain) == 0 ? 42 : 1;
}

/* Each call is an error, but a loop does not fill the log: each calling place is reported once. */
TEST(domain_synchronize_is_an_error_reported_once_a_place)
{
    expect_exit(42, domain_synchronize_inside(), "'mine'");
    assert_names_the_caller(&last_child, (uintptr_t)synchronize_here);
    assert_int_equal(said("the thread would wait for itself"), 2);
}

static struct prudence_domain *shared_domain;

static void *synchronize_in_a_thread(void *unused)
{
    prudence_domain_read_lock(shared_domain);
    for (unsigned i = 0; i < 100; i++)
        synchronize_here(shared_domain);
    prudence_domain_read_unlock(shared_domain);
    return unused;
}

static int domain_synchronize_inside_by_threads(void)
{
    pthread_t threads[8];

    shared_domain = prudence_domain_create("shared", PRUDENCE_DOMAIN_MEMB, NULL);
    threads_start(threads, 8, synchronize_in_a_thread);
    threads_join(threads, 8);
    return 42;
}

TEST(once_for_all_threads)
{
    expect_exit(42, domain_synchronize_inside_by_threads(), "");
    assert_int_equal(said("the thread would wait for itself"), 1);
}

static __attribute__((noinline)) int destroy_inside(void *unused)
{
    struct prudence_cache *cache = prudence_cache_create("kept", 64, NULL);
    int inside;

    prudence_read_lock();
    inside = prudence_cache_destroy(cache);
    prudence_read_unlock();
    return inside == EDEADLK && prudence_cache_destroy(cache) == 0 ? 42 : 1;
}

TEST(destroying_a_cache_inside_a_section_is_an_error)
{
    expect_exit(42, destroy_inside(NULL), "'kept'");
    assert_names_the_caller(&last_child, (uintptr_t)destroy_inside);
}

SUITE()
