/* SPDX-License-Identifier: MIT */
/*
 * EBUSY means live objects only. A prudence_trim() of another thread that has taken free objects of
 * the cache off a CPU, and not yet put them into their slabs, does not cause it. Destruction waits
 * for such a thread, which calls no function of the program in that time.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include <prudence/prudence.h>

#include "slab/all_caches.h"
#include "slab/node.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static atomic_bool destroyed;
static struct prudence_cache *cache;

/* Stops the trimming thread while destruction runs, but not for ever, because destruction may
 * wait for the trim to end. */
static void stop_a_while(int number)
{
    for (unsigned i = 0; i < 300 && !destroyed; i++)
        pause_ms(1);
}

static void *trim(void *unused)
{
    prudence_trim();
    return unused;
}

TEST(destroying_a_cache_that_is_trimmed_is_no_error)
{
    void *objects[20];
    pthread_t trimmer;
    int error;

    signal(SIGUSR1, stop_a_while);
    cache = prudence_cache_create("trimmed", 64, NULL);
    for (unsigned i = 0; i < 20; i++)
        objects[i] = prudence_cache_alloc(cache);
    prudence_cache_free_bulk(cache, 20, objects);
    for (unsigned i = 0; i < os_node_count(); i++)
        os_lock_take(&cache->body->nodes[i].lock);
    pthread_create(&trimmer, NULL, trim, NULL);
    pause_ms(100); /* it now waits for the node and holds the objects */
    pthread_kill(trimmer, SIGUSR1);
    pause_ms(20);
    for (unsigned i = 0; i < os_node_count(); i++)
        os_lock_release(&cache->body->nodes[i].lock);
    error = prudence_cache_destroy(cache);
    destroyed = true;
    pthread_join(trimmer, NULL);
    assert_int_equal(error, 0);
}

static unsigned done;

static void work(void)
{
    done++;
}

TEST(a_thread_that_holds_a_cache_leaves_work_for_later)
{
    cache = prudence_cache_create("held", 64, NULL);
    os_lock_take(&slab_caches_lock);
    cache_hold(cache);
    os_lock_release(&slab_caches_lock);
    os_later(OS_LATER_ADVICE, work);
    os_in_flight_begin();
    os_in_flight_end();
    assert_false(os_holds_nothing());
    assert_int_equal(done, 0);
    cache_let_go(cache);
    assert_int_equal(done, 1);
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE()
