/* SPDX-License-Identifier: MIT */
/*
 * Readers that can be outlived: objects of a set of a domain with sections and a hazard domain. A
 * reader that stays names what it uses and leaves its section; from then on it keeps these objects,
 * and nothing else.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <prudence/hazard.h>

#include "support/slab_test.h"
#include "support/stats.h"
#include "support/threads.h"

static struct prudence_domain *sections, *hazards, *set;
static void *objects[OBJECTS_MAX];

static void make_set(struct prudence_domain *with_sections)
{
    sections = with_sections;
    hazards = prudence_domain_create("names", PRUDENCE_DOMAIN_HAZARD, NULL);
    set = prudence_domain_create_set("both", (struct prudence_domain *[]){hazards, sections}, 2);
    assert_non_null(set);
}

static void end_set(void)
{
    assert_int_equal(prudence_domain_destroy(set), 0);
    assert_int_equal(prudence_domain_destroy(hazards), 0);
}

static void end_manual_set(void)
{
    end_set();
    assert_int_equal(prudence_domain_destroy(sections), 0);
}

/* Lets the readers of the manual domain leave. */
static void sections_end(void)
{
    prudence_manual_advance(sections);
    prudence_manual_advance(sections);
}

static bool is_over(prudence_gp_t cookie)
{
    bool over = false;

    for (int i = 0; i < 4; i++) /* each check drives by a step */
        over = prudence_domain_poll_state(set, cookie);
    return over;
}

/* The name is written after a check of names could have been made, before the section ends. */
TEST(a_reader_moves_from_a_section_to_a_name)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    prudence_gp_t cookie;

    make_set(manual_domain());
    cookie = prudence_domain_start_poll(set);
    assert_false(is_over(cookie));
    prudence_hazard_set(hazard, objects);
    sections_end();
    assert_false(is_over(cookie));
    assert_int_equal(prudence_domain_synchronize(set), EDEADLK); /* this thread names something */
    prudence_hazard_release(hazard);
    assert_true(is_over(cookie));
    end_manual_set();
}

static unsigned latent_in(struct prudence_cache *cache)
{
    return (unsigned)stats_of(cache).objects_latent;
}

/* Ends the grace period under way, and the one that a batch may have to wait for after it; an
 * object whose slab waited already needs another. */
static void settle(struct prudence_cache *cache)
{
    for (int i = 0; i < 4; i++) {
        sections_end();
        prudence_cache_shrink(cache);
    }
}

TEST(what_nobody_names_goes_on_when_sections_have_ended)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    struct prudence_cache *cache;
    void *named = NULL;

    pin_thread();
    make_set(manual_domain());
    cache = fixed_cache(128, 256, set);
    for (unsigned round = 0; round < 5; round++) {
        allocate_all(cache, objects, 200);
        assert_false(named && contains(objects, 200, named));
        defer_all(cache, objects, 200);
        prudence_cache_shrink(cache);
        assert_int_equal(latent_in(cache), named ? 201 : 200);
        if (!named)
            prudence_hazard_set(hazard, named = objects[7]); /* a reader that is in a section */
        settle(cache);
        assert_int_equal(latent_in(cache), 1);
        check_books(cache);
    }
    prudence_hazard_release(hazard);
    settle(cache);
    assert_int_equal(latent_in(cache), 0);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    end_manual_set();
}

TEST(a_child_goes_on)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    prudence_gp_t cookie;
    pid_t child;

    make_set(prudence_domain_create("sections", PRUDENCE_DOMAIN_MEMB, NULL));
    prudence_hazard_set(hazard, objects);
    cookie = prudence_domain_start_poll(set);
    assert_false(is_over(cookie));
    child = fork();
    if (child == 0) {
        bool held = !is_over(cookie);

        prudence_hazard_reset(hazard);
        _exit(held && prudence_domain_synchronize(set) == 0 && is_over(cookie) ? 0 : 1);
    }
    assert_int_equal(status_of(child), 0);
    prudence_hazard_release(hazard);
    end_set();
    assert_int_equal(prudence_domain_destroy(sections), 0);
}

/* ------------------------------------------------------------------- a reader that is asked to
 * name */

struct route {
    struct route *link;
    int hop;
};

static struct route *current;
static struct prudence_hazard *names;
static struct route *volatile found;
static int left; /* the section has ended; atomic */
static sem_t is_inside, may_end;

/* In the reader: what it uses is named, so nothing is held up but that. */
static void leave(int signal)
{
    prudence_hazard_set(names, found);
    prudence_read_unlock();
    __atomic_store_n(&left, 1, __ATOMIC_RELEASE);
}

static void *stay(void *unused)
{
    names = prudence_hazard_acquire();
    prudence_read_lock();
    found = prudence_dereference(current);
    sem_post(&is_inside);
    while (sem_wait(&may_end) && errno == EINTR)
        ;
    assert_int_equal(found->hop, 0); /* whether or not a thread asked */
    if (!__atomic_load_n(&left, __ATOMIC_ACQUIRE))
        prudence_read_unlock();
    prudence_hazard_release(names);
    return unused;
}

static void replace(struct prudence_cache *cache, int hop)
{
    struct route *next = prudence_cache_alloc(cache), *old = current;

    assert_non_null(next);
    next->hop = hop;
    prudence_assign_pointer(current, next);
    prudence_cache_free_deferred(cache, old);
}

TEST(a_reader_that_stays_is_outlived)
{
    struct sigaction action = {.sa_handler = leave};
    struct prudence_cache *cache;
    pthread_t reader;
    uint64_t most = 0;

    make_set(prudence_default_domain());
    cache = fixed_cache(64, 0, set);
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&is_inside, 0, 0);
    sem_init(&may_end, 0, 0);
    replace(cache, 0);
    reader = thread_start(stay, NULL);
    sem_wait(&is_inside);
    for (int hop = 1; hop <= 20000; hop++)
        replace(cache, hop);
    assert_true(latent_in(cache) >= 20000); /* a section keeps all of it */
    pthread_kill(reader, SIGUSR1);
    while (!__atomic_load_n(&left, __ATOMIC_ACQUIRE))
        sched_yield();
    for (int i = 0; i < 3; i++)
        prudence_cache_shrink(cache);
    for (int hop = 1; hop <= 200000; hop++) {
        replace(cache, hop);
        if (hop % 1000 == 0 && latent_in(cache) > most)
            most = latent_in(cache);
    }
    assert_in_range(most, 1, 40000);
    sem_post(&may_end);
    pthread_join(reader, NULL);
    prudence_cache_free_deferred(cache, current);
    assert_int_equal(prudence_cache_destroy(cache), 0);
    end_set();
}

SUITE()
