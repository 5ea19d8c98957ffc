/* SPDX-License-Identifier: MIT */
/*
 * Rule 6: the idle helper is stopped while it holds one object. An owner that closes a batch then
 * must not make the helper mix two cookies in a transfer batch. Fork and the destruction of the
 * cache wait for the helper, because they would not find that object anywhere.
 *
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "posix.h"
#include "slab/transfer_batch.h"
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "support/gp_tsan.h"
#include "support/patience.h"
#include "support/slab_test.h"
#include "support/step.h"

#define ROOM  64 /* batches of 32 */
#define FIRST 3  /* objects in the first batch */
#define HELD  (3 * ROOM)

static struct prudence_cache *cache;
static void *objects[HELD];
static uint64_t head_then;

/* Closes the batch of this CPU. */
static void close_batch(void)
{
    struct cpu_cache *cpu = cpu_cache_take(cache, &cache);

    assert_non_null(cpu);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
}

/* Fills the object cache, and defers FIRST objects in a closed batch and more in the open one. All
 * others are free, so no object is live. */
static void fill_cache(void)
{
    cache = fixed_cache(64, ROOM, manual_domain());
    allocate_all(cache, objects, HELD);
    defer_all(cache, objects, FIRST);
    close_batch();
    defer_all(cache, objects + FIRST, ROOM / 2 - FIRST - 1);
    free_all(cache, objects + ROOM / 2 - 1, HELD - ROOM / 2 + 1);
    while (stack_count(&cpu_here(cache)->line) < ROOM) { /* so that nothing fits */
        void *object;

        node_take_all(cache, node_here(cache), &object, 1);
        free_all(cache, &object, 1);
    }
    head_then = load_relaxed(&cpu_here(cache)->line.ring_head);
    assert_int_equal(stats_of(cache).objects_live, 0);
}

static bool helper_has_one_in_hand(void)
{
    const struct os_percpu_line *line = &cpu_here(cache)->line;

    return load_relaxed(&line->ring_head) == head_then + 1 && load_relaxed(&line->owner) == 0;
}

/* --- an owner in between --- */

static bool closed;

static void close_in_between(const greg_t *registers)
{
    if (closed || !helper_has_one_in_hand())
        return;
    closed = true;
    prudence_manual_advance(cache->domain); /* the first batch is safe, the second will not be */
    close_batch();
}

static void preflush_all(void *unused)
{
    preflush_cpu(cache, os_cpu_current(), 100);
}

static void expect_cookie_covers_all(const struct transfer_batch *batch)
{
    if (!gp_poll(cache->domain, batch->cookie))
        return;
    for (unsigned i = 0; i < batch->count; i++)
        assert_true(contains(objects, FIRST, batch->objects[i]));
}

TEST(no_transfer_batch_mixes_two_cookies)
{
    fill_cache();
    step_through(preflush_all, NULL, close_in_between);
    assert_true(closed);
    assert_true(load_relaxed(&cache->body->preflushed_objects) > FIRST + 10);
    for (unsigned node = 0; node < os_node_count(); node++)
        for (const struct transfer_batch *on_its_way = cache->body->nodes[node].handover;
             on_its_way; on_its_way = on_its_way->next)
            expect_cookie_covers_all(on_its_way);
    check_books(cache);
    destroy_empty(cache);
}

/* --- a thread that must wait --- */

static sem_t in_the_middle, go_on;
static bool stopped;

static void stop_in_between(const greg_t *registers)
{
    if (stopped || !helper_has_one_in_hand())
        return;
    stopped = true;
    sem_post(&in_the_middle);
    while (sem_wait(&go_on))
        ;
}

static void work(void *unused)
{
    preflush_work();
}

static void *be_helper(void *unused)
{
    step_through(work, NULL, stop_in_between);
    return unused;
}

static int outcome;
static bool came_back;

/* The child must find the object that the helper held; otherwise it could not destroy the cache. */
static void *fork_now(void *unused)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        alarm(patience(30));
        for (unsigned i = 0; i < 2; i++) {
            prudence_cache_shrink(cache);
            prudence_manual_advance(cache->domain);
        }
        _exit(prudence_cache_destroy(cache));
    }
    store_relaxed(&came_back, true);
    waitpid(child, &status, 0);
    outcome = status;
    return unused;
}

/* All objects of the cache are safe, so the destroy waits for the helper only. */
static void *destroy_now(void *unused)
{
    outcome = prudence_cache_destroy(cache);
    store_relaxed(&came_back, true);
    return unused;
}

static void expect_to_wait(void *(*act)(void *))
{
    pthread_t helper, actor;
    bool early;

    sem_init(&in_the_middle, 0, 0);
    sem_init(&go_on, 0, 0);
    stopped = came_back = false;
    outcome = -1;
    fill_cache();
    close_batch();
    preflush_enabled = true;
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false;
    assert_int_equal(pthread_create(&helper, NULL, be_helper, NULL), 0);
    while (sem_wait(&in_the_middle))
        ;
    prudence_manual_advance(cache->domain);
    assert_int_equal(pthread_create(&actor, NULL, act, NULL), 0);
    os_sleep_ns(50000000); /* time for a wrong return */
    early = load_relaxed(&came_back);
    sem_post(&go_on);
    pthread_join(helper, NULL);
    pthread_join(actor, NULL);
    assert_false(early);
    assert_int_equal(outcome, 0);
}

TEST(fork_waits_for_it)
{
    expect_to_wait(fork_now);
    check_books(cache);
    destroy_empty(cache);
}

TEST(destruction_waits_for_it)
{
    expect_to_wait(destroy_now);
}

static bool is_idle(unsigned cpu)
{
    return true;
}

int main(void)
{
    unsigned cpu = pin_thread();

    if (cpu >= 64) {
        print_message("skipped: none of the first 64 CPUs\n");
        return 77;
    }
    inject_topology(); /* steps would restart an rseq section forever */
    injected_cpu = cpu;
    posix_idle_inject(is_idle);
    return suite_run(NULL, NULL);
}
