/* SPDX-License-Identifier: MIT */
/*
 * With check=1, a reader of an object gets a report if it is in no section of the domain of the
 * object's cache, and a callback if it waits for the readers of another domain. All other uses are
 * silent.
 *
 * ctest: not-with thread (much to do, and the other thread only publishes)
 */
#define PRUDENCE_CHECK_READERS
#include "support/slab_test.h"

#include <pthread.h>
#include <sched.h>

#include <prudence/call.h>
#include <prudence/hazard.h>
#include <prudence/rcu.h>

#include "toolkit/domains/hazard_names.h"
#include "support/gp_child.h"

struct item {
    struct prudence_head head;
    int value;
};

static struct prudence_domain *domain, *other;
static struct prudence_cache *cache;
static struct item *published;

static int value_of_published(void)
{
    return prudence_dereference(published)->value;
}

static void set_up(const char *check)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    prudence_option_set("check", check);
    domain = prudence_domain_create("own", PRUDENCE_DOMAIN_MEMB, NULL);
    other = prudence_domain_create("foreign", PRUDENCE_DOMAIN_MEMB, NULL);
    attr.domain = domain;
    cache = prudence_cache_create("items", sizeof(struct item), &attr);
    published = prudence_cache_alloc(cache);
    published->value = 7;
}

static int read_in(void *where)
{
    struct prudence_domain *section = where ? *(struct prudence_domain **)where : NULL;
    int sum = 0;

    for (unsigned i = 0; i < 3; i++) {
        if (section)
            prudence_domain_read_lock(section);
        sum += value_of_published();
        if (section)
            prudence_domain_read_unlock(section);
    }
    return sum;
}

static int read_in_no_section(void *check)
{
    set_up(check);
    return read_in(NULL);
}

static int read_in_another_domain(void *check)
{
    set_up(check);
    return read_in(&other);
}

static int read_in_the_default_domain(void *check)
{
    int sum;

    set_up(check);
    prudence_read_lock();
    sum = read_in(NULL);
    prudence_read_unlock();
    return sum;
}

static int read_in_its_domain(void *check)
{
    set_up(check);
    return read_in(&domain);
}

static int read_what_is_not_ours(void *check)
{
    static struct item own = {.value = 7};

    set_up(check);
    published = &own;
    read_in(NULL);
    published = NULL;
    prudence_check_reader(published);
    return 21;
}

static void expect_report(int (*body)(void *check), const char *check, unsigned times)
{
    struct child_result result;

    child_run(body, (void *)(uintptr_t)check, &result);
    if (!child_exited_with(&result, 21) || child_count(&result, "reader at ") != times ||
        child_count(&result, "of cache 'items' is read outside") != times ||
        child_count(&result, "of domain 'own'") != times)
        fail_msg("expected %u, with check=%s: %s", times, check, result.output);
}

TEST(readers_are_checked)
{
    expect_report(read_in_no_section, "1", 1); /* once for each place */
    expect_report(read_in_another_domain, "1", 1);
    expect_report(read_in_the_default_domain, "1", 1);
    expect_report(read_in_its_domain, "1", 0);
    expect_report(read_what_is_not_ours, "1", 0);
    expect_report(read_in_no_section, "0", 0);
}

/* ------------------------------------------------------------------------------- hazard slots */

static int read_by_slots(void *check)
{
    struct prudence_domain *members[2], *both;
    struct prudence_hazard *own, *moved;
    struct prudence_cache_attr attr = {.size = sizeof attr};
    int sum = 0;

    set_up(check);
    members[0] = domain;
    members[1] = prudence_domain_create("slots", PRUDENCE_DOMAIN_HAZARD, NULL);
    both = prudence_domain_create_set("both", members, 2);
    own = prudence_hazard_acquire();
    moved = prudence_hazard_acquire_movable();
    for (unsigned i = 0; i < 2; i++) {
        attr.domain = i ? both : members[1];
        cache = prudence_cache_create("items", sizeof(struct item), &attr);
        published = prudence_cache_alloc(cache);
        published->value = 1;
        prudence_hazard_set(own, published);
        sum += value_of_published();
        prudence_hazard_set(own, &published->value);
        prudence_hazard_set(moved, (char *)&published->value + 3);
        sum += value_of_published();
        prudence_hazard_set(own, published + 1);
        sum += value_of_published();
        prudence_hazard_reset(moved);
    }
    prudence_domain_read_lock(domain);
    sum += value_of_published();
    prudence_domain_read_unlock(domain);
    return 14 + sum;
}

static void *name_published(void *unused)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();

    prudence_hazard_protect(slot, (void **)&published);
    while (__atomic_load_n(&published, __ATOMIC_ACQUIRE))
        sched_yield();
    prudence_hazard_release(slot);
    return NULL;
}

/* A name of another thread does not protect this one. */
static int read_by_no_slot(void *check)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};
    pthread_t thread;
    int sum = 0;

    set_up(check);
    attr.domain = prudence_domain_create("own", PRUDENCE_DOMAIN_HAZARD, NULL);
    cache = prudence_cache_create("items", sizeof(struct item), &attr);
    published = prudence_cache_alloc(cache);
    published->value = 7;
    pthread_create(&thread, NULL, name_published, NULL);
    while (!hazard_names_any())
        sched_yield();
    for (unsigned i = 0; i < 3; i++)
        sum += value_of_published();
    __atomic_store_n(&published, NULL, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    return sum;
}

TEST(readers_by_hazard_slots_are_checked)
{
    expect_report(read_by_slots, "1", 0);
    expect_exit(21, read_by_no_slot((void *)(uintptr_t) "1"), "");
    assert_int_equal(said("while no hazard slot of this thread names it"), 1);
}

static void nothing(struct prudence_head *head)
{
}

static int call_in_another_domain(void *check)
{
    set_up(check);
    for (unsigned i = 0; i < 2; i++) {
        prudence_domain_call(other, &published->head, nothing);
        prudence_domain_barrier(other);
    }
    return 21;
}

static int call_in_its_domain(void *check)
{
    struct prudence_domain *members[2];
    struct prudence_domain *set;
    struct item *sized;

    set_up(check);
    members[0] = domain;
    members[1] = other;
    set = prudence_domain_create_set("both", members, 2);
    prudence_domain_call(domain, &published->head, nothing);
    prudence_domain_barrier(domain);
    prudence_domain_call(set, &published->head, nothing);
    prudence_domain_barrier(set);
    sized = prudence_malloc(sizeof *sized); /* may wait for any domain */
    prudence_domain_call(other, &sized->head, nothing);
    prudence_domain_barrier(other);
    return 21;
}

static void expect_call_report(int (*body)(void *check), const char *check, unsigned times)
{
    struct child_result result;

    child_run(body, (void *)(uintptr_t)check, &result);
    if (!child_exited_with(&result, 21) ||
        child_count(&result, "waits for the readers of domain ") != times ||
        child_count(&result, "waits for the readers of domain 'foreign'") != times)
        fail_msg("expected %u, with check=%s: %s", times, check, result.output);
}

TEST(callbacks_are_checked)
{
    expect_call_report(call_in_another_domain, "1", 1);
    expect_call_report(call_in_its_domain, "1", 0);
    expect_call_report(call_in_another_domain, "0", 0);
}

SUITE()
