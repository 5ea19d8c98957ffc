/* SPDX-License-Identifier: MIT */
/*
 * Forks while another thread is anywhere in a slow path: at instructions spread over all of the
 * path, or where the path waits (support/fork_at_step.h). The child then does everything, checks
 * its books, and forks, too.
 *
 * rseq=0, because restartable sequences cannot be stepped through. Threads cannot be made under the
 * trap flag (pthread_create blocks signals), so the test's own thread takes a worker's steps and
 * runs the callbacks.
 *
 * ctest: cost 17
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>

#include <prudence/call.h>
#include <prudence/hazard.h>
#include <prudence/poll.h>
#include <prudence/scm.h>

#include "heap/cold.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_queue.h"
#include "gp/user/domain.h"
#include "posix.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "slab/reclaim/limit.h"
#include "slab/preflush.h"
#include "support/slab_test.h"
#include "support/fork_at_step.h"

/* Each step takes microseconds, so paths are short: few objects in a slab, and STEPS_MOST steps. */
#define STEPS_MOST 1500
#define PLACES     3  /* of a path, where the process forks */
#define INSIDE     24 /* steps with all locks held, at every other place */
#define OBJECTS    6
#define MIB        ((size_t)1 << 20)
#define BLOCK      (MIB / 5)

static struct prudence_cache *cache;
static struct prudence_domain *domain;
static void *objects[OBJECTS];
static bool in_section;
static unsigned turn;

static void enter_section(void)
{
    prudence_read_lock();
    in_section = true;
}

static void leave_section(void)
{
    prudence_read_unlock();
    in_section = false;
}

static void destroy_cache(void)
{
    if (prudence_cache_destroy(cache))
        fail_msg("the parent's cache cannot be destroyed");
    cache = NULL;
}

/* ---------------------------------------------------------------------------- caches, and pages */

struct thing {
    unsigned made, live;
    char rest[8000];
};

static void make_cache(void)
{
    cache = prudence_cache_create("forked", sizeof(struct thing), NULL);
}

static void allocate_and_free(void)
{
    prudence_cache_free(cache, prudence_cache_alloc(cache));
}

/* Prepares refills, flushes and closed batches. */
static void make_and_fill_cache(void)
{
    make_cache();
    allocate_all(cache, objects, OBJECTS);
    free_all(cache, objects, OBJECTS);
}

static void defer_and_settle(void)
{
    allocate_all(cache, objects, OBJECTS / 2);
    defer_all(cache, objects, OBJECTS / 2);
    prudence_cache_shrink(cache);
}

static void use_large_blocks(void)
{
    prudence_free(prudence_malloc(BLOCK));
}

static void use_metadata(void)
{
    void *small = os_meta_alloc(192), *large = os_meta_alloc(100000);

    os_meta_free(small, 192);
    os_meta_free(large, 100000);
}

static void trim(void)
{
    prudence_trim();
}

/* Makes the page source, or the metadata, refuse one of the first calls. */
static void refuse_one(void)
{
    fork_path_enter();
    memory_fail(turn, 1);
}

static void grow_where_refused(void)
{
    void *object = prudence_cache_alloc(cache);

    if (object)
        prudence_cache_free(cache, object);
}

static void succeed_and_destroy(void)
{
    memory_succeed();
    destroy_cache();
}

/* ---------------------------------------------------------------- constructors, and destructors */

#define MAGIC 0x600d

static void construct(void *object, void *unused)
{
    struct thing *thing = object;

    thing->made = 0;
    for (unsigned i = 0; i < 5; i++)
        thing->made += MAGIC / 5;
    thing->made += MAGIC % 5;
}

static void make_constructed_cache(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .constructor = construct};

    cache = prudence_cache_create("constructed", sizeof(struct thing), &attr);
}

static void all_are_constructed(void)
{
    allocate_all(cache, objects, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++)
        assert_int_equal(((struct thing *)objects[i])->made, MAGIC);
    free_all(cache, objects, OBJECTS);
}

static unsigned destroyed;

static void destruct(void *object, void *unused)
{
    struct thing *thing = object;

    if (!thing->live)
        abort();
    thing->live = 0;
    destroyed++;
}

/* Leaves objects deferred, safe, and not destroyed. */
static void make_destructed_cache(void)
{
    struct prudence_cache_attr attr = {.size = sizeof attr, .destructor = destruct};

    destroyed = 0;
    cache = prudence_cache_create("destructed", sizeof(struct thing), &attr);
    allocate_all(cache, objects, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++)
        ((struct thing *)objects[i])->live = 1;
    defer_all(cache, objects, OBJECTS);
}

static void barrier_of_cache(void)
{
    if (prudence_cache_barrier(cache))
        abort();
}

/* A destructor that had begun counts as done. */
static void all_are_destroyed(void)
{
    barrier_of_cache();
    assert_in_range(destroyed, OBJECTS - 1, OBJECTS);
}

static void make_destructed_cache_in_section(void)
{
    make_destructed_cache();
    enter_section();
}

/* ------------------------------------------------------------------------------------ callbacks */

static struct callback_queue *queue;
static struct callback_worker *own;
static struct prudence_head heads[OBJECTS];
static unsigned ran;

static void count(struct prudence_head *head)
{
    ran++;
}

/* Queues callbacks to a worker without a thread; the test takes the steps. */
static void push_callbacks(void)
{
    ran = 0;
    domain = prudence_domain_create("of callbacks", PRUDENCE_DOMAIN_MEMB, NULL);
    queue = callback_queue_make(domain, 1);
    own = callback_worker_make(queue, -1, false);
    own->started = own->awake = 1;
    for (unsigned i = 0; i < OBJECTS; i++) {
        heads[i].func = count;
        callback_push(queue, &heads[i], 0);
    }
}

static void become_runner(void)
{
    if (callback_queue_become_runner(queue))
        callback_queue_end_running(queue);
}

static void be_worker(void)
{
    while (callback_worker_serve_all(own) != CALLBACK_TURN_EMPTY)
        ;
}

static void all_have_run(void)
{
    callback_barrier(queue);
    callback_barrier(domain->callbacks);
    assert_in_range(ran, OBJECTS - 1, OBJECTS);
}

static void release_callbacks(void)
{
    callback_barrier(domain->callbacks);
    callback_queue_release(queue);
    callback_worker_release(own);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* The worker has no thread. */
static void end_callbacks(void)
{
    own->started = 0;
    release_callbacks();
}

/* Queues callbacks to such a worker, already stopped. They go to the domain's own queue, whose
 * worker has no thread either. */
static void push_callbacks_to_move(void)
{
    push_callbacks();
    own->started = 0;
    callback_main_worker.started = callback_main_worker.awake = 1;
}

static void move_callbacks(void)
{
    callback_worker_move_queue(queue, domain->callbacks);
}

static void run_moved(void)
{
    while (callback_worker_serve_all(&callback_main_worker) != CALLBACK_TURN_EMPTY)
        ;
    callback_main_worker.started = 0;
    end_callbacks();
}

/* The forking thread was the runner before: the child must not take the other thread's started
 * work for its own. */
static void push_callbacks_and_run_them(void)
{
    push_callbacks();
    be_worker();
    for (unsigned i = 0; i < OBJECTS; i++)
        callback_push(queue, &heads[i], 0);
    ran = 0;
}

static void barrier_in_section(void)
{
    push_callbacks();
    prudence_domain_read_lock(domain);
}

static void barrier_of_domain(void)
{
    callback_barrier(queue);
}

/* From now on the barrier may start a thread for the worker, which release_callbacks() then
 * stops. */
static void let_barrier_end(void)
{
    prudence_domain_read_unlock(domain);
    own->started = 0;
}

/* ------------------------------------------------------------------------------------- pressure */

static void synchronize(void)
{
    prudence_synchronize();
}

static void option(const char *name, const char *value)
{
    if (prudence_option_set(name, value))
        fail_msg("option %s", name);
}

/* This thread may not wait in its section, so it exceeds the limit, and the other one has to
 * wait at once. */
static void reach_latent_limit(void)
{
    make_cache();
    enter_section();
    option("wait_max", "100s");
    option("latent_limit", "16K");
    while (limit_fits(0, true))
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

static void defer_one(void)
{
    prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
}

static void no_limits(void)
{
    option("wait_max", "500ms");
    option("latent_limit", "32M");
    option("limit", "0");
    destroy_cache();
}

static uint64_t used(void)
{
    struct os_pages_stats stats;

    os_pages_stats(&stats);
    return stats.used;
}

static void set_limit(uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    option("limit", text);
}

/* Uses up the limit with deferred memory that waits for this thread's section. */
static void reach_limit(void)
{
    void *object;

    make_cache();
    prudence_trim();
    enter_section();
    set_limit(used() + 256 * 1024);
    while ((object = prudence_cache_alloc(cache)))
        prudence_cache_free_deferred(cache, object);
    option("wait_max", "100s");
}

/* Its section is over, so nothing holds up grace periods. */
static void limit_holds_nobody(void)
{
    for (unsigned i = 0; i < 800; i++) {
        void *object = prudence_cache_alloc(cache);

        assert_non_null(object);
        prudence_cache_free_deferred(cache, object);
    }
    option("limit", "0");
}

#define BLOCKS_OF 4

/* Leaves room for two blocks; another thread asks for one of them. */
static void limit_to_two_blocks(void)
{
    make_cache();
    prudence_trim();
    option("retain", "0");
    set_limit(used() + 2 * BLOCK + BLOCK / 2);
}

static void use_block(void)
{
    prudence_free(prudence_malloc(BLOCK));
}

/* Another thread's request no longer counts, unless it had been granted. */
static void one_fits(void)
{
    void *block = prudence_malloc(BLOCK), *others[BLOCKS_OF];
    unsigned more = 0;

    assert_non_null(block);
    while (more < BLOCKS_OF && (others[more] = prudence_malloc(BLOCK)))
        more++;
    assert_true(more <= 1);
    while (more)
        prudence_free(others[--more]);
    prudence_free(block);
    option("limit", "0");
}

static void no_limit_of_blocks(void)
{
    option("retain", "2M");
    no_limits();
}

/* ------------------------------------------------------------------------------------ pre-flush */

#define ROOM 64

static bool is_idle(unsigned cpu)
{
    return true;
}

/* Makes the helper's work: a full object cache and closed batches. */
static void fill_for_preflush(void)
{
    static void *many[3 * ROOM];

    posix_idle_inject(is_idle);
    preflush_enabled = true;
    cache = fixed_cache(64, ROOM, NULL);
    allocate_all(cache, many, 3 * ROOM);
    defer_all(cache, many, ROOM);
    free_all(cache, many + ROOM, 2 * ROOM);
    preflush_schedule(cache, cpu_here(cache));
    preflush_enabled = false; /* no helper in the child, which checks the books */
}

static void be_helper(void)
{
    preflush_work();
}

static void end_preflush(void)
{
    posix_idle_inject(NULL);
    destroy_cache();
}

/* ------------------------------------------------------------- caches and domains come and go */

static void make_and_use_cache(void)
{
    make_cache();
    allocate_all(cache, objects, 2);
    prudence_cache_free_deferred(cache, objects[0]);
    prudence_cache_free(cache, objects[1]);
    prudence_synchronize();
}

/* In the child it may be half made, or half destroyed. */
static void forget_cache(void)
{
    cache = NULL;
}

/* Makes a cold cache that becomes warm at the next allocation. */
static void make_cold_cache(void)
{
    cold_after = 0;
    cache = prudence_cache_create("cold", 64, NULL);
    cold_after = 256;
    for (unsigned i = 0; i < COLD_ROUND; i++)
        allocate_and_free();
    assert_true(cache_is_cold(cache));
}

/* The cache is cold or warm, and becomes warm if it is used. The object of the other thread may
 * stay live, in a slab of the common cache. */
static void cold_or_warm_is_used(void)
{
    void *things[OBJECTS];

    assert_false(cache_is_destroyed(cache));
    allocate_all(cache, things, OBJECTS);
    free_all(cache, things, OBJECTS / 2);
    defer_all(cache, things + OBJECTS / 2, OBJECTS - OBJECTS / 2);
    for (unsigned i = 0; i < 2 * COLD_ROUND; i++)
        allocate_and_free();
    assert_false(cache_is_cold(cache));
    barrier_of_cache();
    assert_true(stats_of(cache).objects_live <= 1);
    forget_cache();
}

static void create_and_destroy_domain(void)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_SRCU,
                                                      PRUDENCE_DOMAIN_QSBR};

    domain = prudence_domain_create("forked", kinds[turn % 3], NULL);
    if (!domain || prudence_domain_destroy(domain))
        abort();
}

/* This thread visits the domain that the other one destroys. */
static bool visits;

static void visit_domain(void)
{
    struct prudence_domain *found[16];
    uint64_t after = 0;
    unsigned known;

    domain = prudence_domain_create("visited", PRUDENCE_DOMAIN_MEMB, NULL);
    gp_domain_get(domain);
    known = gp_domains_visit(found, 16, &after);
    for (unsigned i = 0; i < known; i++) {
        visits |= found[i] == domain;
        if (found[i] != domain)
            gp_domain_leave(found[i]);
    }
    assert_true(visits);
    gp_domain_put(domain);
}

static void destroy_visited(void)
{
    if (prudence_domain_destroy(domain))
        abort();
}

static void leave_domain(void)
{
    gp_domain_leave(domain);
    visits = false;
}

/* --------------------------------------------------------------------------- short-term memory */

static void enter_short_term(void)
{
    fork_path_enter();
    scm_register_thread();
    prudence_free(scm_malloc(40));
}

static void refresh_and_tick(void)
{
    scm_refresh(scm_malloc(40), 0);
    scm_tick();
    scm_collect();
}

/* ------------------------------------------------------------------------ one more step by all */

static void carry(void)
{
    os_in_flight_begin();
    os_in_flight_end();
}

/* ------------------------------------------------------------------------------------- children */

static void use_caches(void)
{
    struct prudence_domain *srcu = prudence_domain_create("child's", PRUDENCE_DOMAIN_SRCU, NULL);
    struct prudence_cache_attr attr = {.size = sizeof attr, .domain = srcu};
    struct prudence_cache *own_cache = prudence_cache_create("child's", 200, &attr);

    for (unsigned i = 0; i < 200; i++)
        prudence_cache_free_deferred(own_cache, prudence_cache_alloc(own_cache));
    assert_int_equal(prudence_domain_synchronize(srcu), 0);
    assert_int_equal(prudence_cache_destroy(own_cache), 0);
    assert_int_equal(prudence_domain_destroy(srcu), 0);
}

static void use_short_term_memory(void)
{
    assert_int_equal(scm_register_thread(), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(scm_refresh(scm_malloc(40), 1), 0);
        assert_int_equal(scm_tick(), 0);
    }
    assert_int_equal(scm_unregister_thread(), 0);
}

static void use_cache(void)
{
    allocate_all(cache, objects, OBJECTS);
    for (unsigned i = 0; i < OBJECTS; i++)
        ((struct thing *)objects[i])->live = 1;
    free_all(cache, objects, OBJECTS / 2);
    defer_all(cache, objects + OBJECTS / 2, OBJECTS - OBJECTS / 2);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    check_books(cache);
}

static void use_everything(void)
{
    for (size_t size = 1; size < 3 * MIB; size = size * 3 + 1) {
        void *freed = prudence_malloc(size), *deferred = prudence_malloc(size);

        assert_true(freed && deferred);
        prudence_free(freed);
        prudence_free_deferred(deferred);
    }
    prudence_synchronize();
    use_caches();
    use_short_term_memory();
    prudence_trim();
}

static void live_on(const struct fork_path *path)
{
    use_everything();
    if (cache && cache->object_size >= sizeof(struct thing))
        use_cache();
    else if (cache)
        check_books(cache);
}

/* --------------------------------------------------------------------------- retired objects */

static struct prudence_hazard_head retired[OBJECTS];

static void delete_none(struct prudence_hazard_head *head)
{
}

static void retire_and_reclaim(void)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        prudence_hazard_retire(&retired[i], &retired[i], sizeof retired[i], delete_none);
    prudence_hazard_reclaim();
}

static void none_waits(void)
{
    assert_int_equal(prudence_hazard_reclaim(), 0);
}

/* ----------------------------------------------------------------------------------- the matrix */

static const struct fork_path rows[] = {
    {"callbacks run", .set_up = push_callbacks, .body = be_worker, .in_child = all_have_run,
     .tear_down = end_callbacks},
    {"callbacks move", .set_up = push_callbacks_to_move, .body = move_callbacks,
     .in_child = all_have_run, .tear_down = run_moved},
    {"a barrier waits", .set_up = barrier_in_section, .body = barrier_of_domain,
     .let_end = let_barrier_end, .in_child = all_have_run, .tear_down = release_callbacks},
    {"a cache grows", .set_up = make_cache, .body = allocate_and_free, .tear_down = destroy_cache},
    {"refill, flush, batches", .set_up = make_and_fill_cache, .body = defer_and_settle,
     .tear_down = destroy_cache},
    {"large blocks", .body = use_large_blocks},
    {"metadata", .body = use_metadata},
    {"trim", .set_up = make_and_fill_cache, .body = trim, .tear_down = destroy_cache},
    {"memory is refused", .set_up = make_cache, .enter = refuse_one, .body = grow_where_refused,
     .in_child = memory_succeed, .tear_down = succeed_and_destroy},
    {"short-term memory expires", .enter = enter_short_term, .body = refresh_and_tick},
    {"latent_limit", .set_up = reach_latent_limit, .body = defer_one, .let_end = leave_section,
     .tear_down = no_limits},
    {"limit, and everything is latent", .set_up = reach_limit, .body = defer_one,
     .let_end = leave_section, .in_child = limit_holds_nobody, .tear_down = no_limits},
    {"limit, of large blocks", .set_up = limit_to_two_blocks, .body = use_block,
     .in_child = one_fits, .tear_down = no_limit_of_blocks},
    {"synchronize", .set_up = enter_section, .body = synchronize, .let_end = leave_section},
    {"a cache comes", .set_up = forget_cache, .body = make_cache, .in_child = forget_cache,
     .tear_down = destroy_cache},
    {"a cache goes", .set_up = make_and_use_cache, .body = destroy_cache, .in_child = forget_cache},
    {"a cold cache becomes warm", .set_up = make_cold_cache, .body = allocate_and_free,
     .in_child = cold_or_warm_is_used, .tear_down = destroy_cache},
    {"a domain comes and goes", .body = create_and_destroy_domain},
    {"a visited domain goes", .set_up = visit_domain, .body = destroy_visited,
     .let_end = leave_domain},
    {"pre-flush", .set_up = fill_for_preflush, .body = be_helper, .tear_down = end_preflush},
    /* from here on there is a worker */
    {"a constructor", .set_up = make_constructed_cache, .body = allocate_and_free,
     .in_child = all_are_constructed, .tear_down = destroy_cache},
    {"a destructor", .set_up = make_destructed_cache, .body = barrier_of_cache,
     .in_child = all_are_destroyed, .tear_down = destroy_cache},
    {"a barrier of destructors", .set_up = make_destructed_cache_in_section,
     .body = barrier_of_cache, .let_end = leave_section, .in_child = all_are_destroyed,
     .tear_down = destroy_cache},
};

/* Forks at places of the path up to its end, and also where it waits for this thread. A fork past
 * the end tells how long the path is. */
static void fork_at_places(const struct fork_path *path)
{
    unsigned all = fork_path(path, STEPS_MOST, 0);

    for (turn = 0; turn < PLACES; turn++)
        fork_path(path, all * turn / PLACES, turn % 2 ? INSIDE : 0);
    turn = 0;
    if (path->let_end)
        fork_path(path, FORK_ASLEEP, 0);
}

TEST(while_retired_objects_are_looked_for)
{
    static const struct fork_path path = {
        .name = "objects are retired", .body = retire_and_reclaim, .in_child = none_waits};
    unsigned all = fork_path(&path, STEPS_MOST, 0);

    for (unsigned before = 0; before <= all; before += all / 50)
        fork_path(&path, before, before % 2 ? INSIDE : 0);
}

TEST(while_others_are_at_a_step)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        fork_at_places(&rows[i]);
}

/* ------------------------------------------------------- what begins while a fork is under way */

/* A thread that is about to begin sets a mark, sees that a fork is under way, and clears the
 * mark again. A child copied in between has the mark and not the thread: its own fork must not
 * wait for that thread. */
TEST(a_carrier_that_was_about_to_begin)
{
    static const struct fork_path path = {"a carrier begins", .body = carry};
    unsigned all = fork_path(&path, STEPS_MOST, 0); /* more than it takes to begin */

    for (unsigned inside = 1; inside <= all; inside++)
        fork_path(&path, 0, inside);
}

TEST(a_helper_that_was_about_to_begin)
{
    static const struct fork_path path = {"the helper begins", .set_up = fill_for_preflush,
                                          .body = be_helper, .tear_down = end_preflush};

    for (unsigned inside = 1; inside <= 160; inside += 3)
        fork_path(&path, 0, inside);
}

/* The forking thread was the runner before; the next one has not yet stored its id. */
TEST(a_runner_that_was_about_to_begin)
{
    static const struct fork_path path = {"a runner begins", .set_up = push_callbacks_and_run_them,
                                          .body = become_runner, .in_child = all_have_run,
                                          .tear_down = end_callbacks};

    for (unsigned before = 0; before <= 30; before++)
        fork_path(&path, before, 0);
}

BEFORE_CONSTRUCTORS(fork_at_step_start);

int main(void)
{
    if (prudence_option_set("rseq", "0"))
        return 1;
    fork_path_uses = live_on;
    pin_thread();
    return suite_run(NULL, NULL);
}
