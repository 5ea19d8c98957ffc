/* SPDX-License-Identifier: MIT */
/*
 * The walk over the heap (<prudence/heap_walk.h>): an object in every possible place is shown in
 * the right state; each slab is shown once, in order of address; sums equal the statistics;
 * visitors may change the heap; and some calls are refused.
 *
 * ctest: not-with thread (all but one case have one thread; torture_heap_walk has many)
 */
#define _GNU_SOURCE
#include "support/slab_test.h"

#include <unistd.h>

#include <prudence/heap_walk.h>

#include "slab/all_caches.h"
#include "slab/latent_cache.h"
#include "slab/preflush.h"
#include "slab/transfer_batch.h"
#include "posix.h"
#include "support/gp_reader.h"
#include "support/threads.h"

/* ---------------------------------------------------------------------------------- results of a
 * walk */

#define SHOWN_MAX 60000

struct shown {
    unsigned slabs, objects;
    const void *last_pages;
    uint64_t left; /* objects of the slab not yet shown */
    struct prudence_heap_slab sum, slab;
    struct prudence_heap_object object[SHOWN_MAX];
};
static struct shown shown;

static int show(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                void *context)
{
    if (object) {
        assert_memory_equal(slab, &shown.slab, sizeof *slab);
        assert_true(shown.left-- > 0);
        if (shown.objects && slab->objects != shown.left + 1)
            assert_true(object->address > shown.object[shown.objects - 1].address);
        assert_true(shown.objects < SHOWN_MAX);
        shown.object[shown.objects++] = *object;
        return 0;
    }
    assert_int_equal(shown.left, 0);
    assert_true(slab->pages > shown.last_pages);
    assert_int_equal(slab->live + slab->cached + slab->latent + slab->free + slab->resting,
                     slab->objects);
    shown.last_pages = slab->pages;
    shown.left = slab->objects;
    shown.slab = *slab;
    shown.slabs++;
    shown.sum.live += slab->live;
    shown.sum.cached += slab->cached;
    shown.sum.latent += slab->latent;
    shown.sum.free += slab->free;
    shown.sum.resting += slab->resting;
    shown.sum.objects += slab->objects;
    return 0;
}

static void walk(struct prudence_cache *cache)
{
    memset(&shown, 0, sizeof shown);
    assert_int_equal(prudence_heap_walk(cache, show, NULL), 0);
    assert_int_equal(shown.left, 0);
    assert_int_equal(shown.objects, shown.sum.objects);
}

/* Returns the one entry of the object. */
static const struct prudence_heap_object *shown_as(const void *object)
{
    const struct prudence_heap_object *found = NULL;

    for (unsigned i = 0; i < shown.objects; i++) {
        if (shown.object[i].address != object)
            continue;
        assert_null(found);
        found = &shown.object[i];
    }
    assert_non_null(found);
    return found;
}

static void assert_state(const void *object, unsigned state, int cpu)
{
    assert_int_equal(shown_as(object)->state, state);
    assert_int_equal(shown_as(object)->cpu, cpu);
}

static void assert_latent(const void *object, unsigned wait, int cpu, uint64_t cookie)
{
    assert_state(object, PRUDENCE_OBJECT_LATENT, cpu);
    assert_int_equal(shown_as(object)->wait, wait);
    assert_int_equal(shown_as(object)->cookie, cookie);
}

static void equals_statistics(struct prudence_cache *cache)
{
    struct prudence_cache_stats stats = stats_of(cache);

    walk(cache);
    assert_int_equal(shown.slabs, stats.slabs_now);
    assert_int_equal(shown.sum.live + shown.sum.resting, stats.objects_live);
    assert_int_equal(shown.sum.cached + shown.sum.latent,
                     stats.objects_cached + stats.objects_latent);
}

/* ---------------------------------------------------------------------------------------------
 * places */

static void *objects[OBJECTS_MAX];

static void close_batch(struct prudence_cache *cache)
{
    char token = 0;
    struct cpu_cache *cpu = cpu_cache_take(cache, &token);

    assert_non_null(cpu);
    latent_cache_close(cache, cpu);
    cpu_cache_release(cpu);
}

TEST(each_place_is_told)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache *cache = fixed_cache(64, 64, domain);
    int cpu = (int)os_cpu_current();
    struct slab *slab;
    uint64_t first, second;

    allocate_all(cache, objects, 200);
    free_all(cache, objects + 10, 5);
    defer_all(cache, objects + 20, 2);
    close_batch(cache);
    first = cpu_here(cache)->closed_cookie.value;
    prudence_manual_advance(domain);
    defer_all(cache, objects + 22, 2);
    close_batch(cache);
    second = cpu_here(cache)->closed_cookie.value;
    assert_int_not_equal(first, second);
    defer_all(cache, objects + 24, 2);
    slab = slab_of(objects[30]);
    node_put_latent(slab, objects[30], false); /* to `waiting` */
    node_put_latent(slab, objects[31], false); /* to `next` */
    node_put(cache, objects + 40, 1);
    walk(cache);
    assert_state(objects[0], PRUDENCE_OBJECT_LIVE, -1);
    assert_int_equal(shown_as(objects[0])->size, 64);
    assert_int_equal(shown_as(objects[0])->wait, PRUDENCE_WAIT_NONE);
    assert_state(objects[10], PRUDENCE_OBJECT_CACHED, cpu);
    assert_state(objects[14], PRUDENCE_OBJECT_CACHED, cpu);
    assert_latent(objects[20], PRUDENCE_WAIT_MERGE, cpu, first);
    assert_latent(objects[21], PRUDENCE_WAIT_MERGE, cpu, first);
    assert_latent(objects[22], PRUDENCE_WAIT_GRACE_PERIOD, cpu, second);
    assert_latent(objects[24], PRUDENCE_WAIT_BATCH, cpu, 0);
    assert_latent(objects[30], PRUDENCE_WAIT_GRACE_PERIOD, -1, slab->waiting_cookie.value);
    assert_latent(objects[31], PRUDENCE_WAIT_BATCH, -1, 0);
    assert_state(objects[40], PRUDENCE_OBJECT_FREE, -1);
    assert_int_equal(shown.sum.live, 200 - 5 - 2 - 2 - 2 - 2 - 1);
    assert_int_equal(shown.sum.latent, 8);
    assert_string_equal(shown.slab.cache_name, cache->name);
    assert_string_equal(shown.slab.domain, "manual");
    assert_ptr_equal(shown.slab.cache, cache);
    assert_int_equal(shown.slab.object_size, 64);
    assert_int_equal(shown.slab.is_large, 0);
    equals_statistics(cache);
    prudence_manual_advance(domain);
    walk(cache);
    assert_latent(objects[30], PRUDENCE_WAIT_MERGE, -1, slab->waiting_cookie.value);
    check_books(cache);
    for (unsigned i = 0; i < 200; i++)
        if (shown_as(objects[i])->state == PRUDENCE_OBJECT_LIVE)
            prudence_cache_free(cache, objects[i]);
    destroy_empty(cache);
}

/* Objects in a transfer batch are on the way to their node. The walk makes the node receive
 * them. */
TEST(transfer_batches_are_latent)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    unsigned held = 100;

    allocate_all(cache, objects, held);
    while (stack_count(&cpu_here(cache)->line) < 32)
        free_all(cache, &objects[--held], 1);
    defer_all(cache, objects, 17);
    assert_int_equal(preflush_cpu(cache, os_cpu_current(), 1), TRANSFER_BATCH_MAX);
    equals_statistics(cache);
    for (unsigned i = 0; i < 17; i++)
        assert_int_equal(shown_as(objects[i])->state, PRUDENCE_OBJECT_LATENT);
    assert_int_equal(shown.sum.latent, 17);
    assert_int_equal(shown.sum.live, held - 17);
    free_all(cache, objects + 17, held - 17);
    destroy_empty(cache);
}

TEST(large_blocks_are_slabs)
{
    char *blocks[3] = {prudence_malloc(100000), prudence_malloc(40000), prudence_malloc(3000000)};

    prudence_free_deferred(blocks[1]);
    walk(NULL);
    assert_state(blocks[0], PRUDENCE_OBJECT_LIVE, -1);
    assert_true(shown_as(blocks[0])->size >= 100000);
    assert_int_equal(shown_as(blocks[1])->state, PRUDENCE_OBJECT_LATENT);
    blocks[2] = prudence_realloc(blocks[2], 5000000);
    blocks[0] = prudence_realloc(blocks[0], 50000);
    walk(NULL);
    assert_state(blocks[0], PRUDENCE_OBJECT_LIVE, -1);
    assert_state(blocks[2], PRUDENCE_OBJECT_LIVE, -1);
    assert_true(shown_as(blocks[2])->size >= 5000000);
    prudence_free(blocks[0]);
    prudence_free(blocks[2]);
}

/* A walk covers 16 MB at a time. A block across the end of such a part is shown once, as `show`
 * asserts. */
TEST(a_block_longer_than_a_step)
{
    char *block = prudence_malloc((size_t)40 << 20);

    assert_non_null(block);
    walk(NULL);
    assert_state(block, PRUDENCE_OBJECT_LIVE, -1);
    prudence_free(block);
}

/* Uses more slabs, and more objects, than one step covers. */
TEST(every_slab_once)
{
    struct prudence_cache *small = fixed_cache(8, 64, manual_domain());
    struct prudence_cache *wide = fixed_cache(4096, 16, manual_domain());
    struct prudence_stats stats;
    unsigned slabs;

    for (unsigned i = 0; i < 5; i++)
        allocate_all(small, objects, 8000);
    allocate_all(wide, objects, 2000);
    equals_statistics(wide);
    assert_true(shown.slabs > 100);
    equals_statistics(small);
    assert_int_equal(shown.sum.live, 40000);
    slabs = shown.slabs;
    walk(NULL);
    prudence_stats(&stats);
    assert_int_equal(shown.slabs, stats.slabs_now);
    assert_int_equal(shown.sum.live, stats.objects_live);
    assert_true(shown.slabs > slabs);
}

/* ------------------------------------------------------------------------------------- visitors */

#define STOP 42

static int skip_all(const struct prudence_heap_slab *slab,
                    const struct prudence_heap_object *object, void *slabs)
{
    assert_null(object);
    ++*(unsigned *)slabs;
    return PRUDENCE_HEAP_SKIP;
}

static int stop_at_the_third(const struct prudence_heap_slab *slab,
                             const struct prudence_heap_object *object, void *visits)
{
    (void)slab, (void)object;
    return ++*(unsigned *)visits == 3 ? STOP : 0;
}

TEST(visitors_skip_and_stop)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    unsigned slabs = 0, visits = 0;

    allocate_all(cache, objects, 1000);
    assert_int_equal(prudence_heap_walk(cache, skip_all, &slabs), 0);
    assert_int_equal(slabs, stats_of(cache).slabs_now);
    assert_int_equal(prudence_heap_walk(cache, stop_at_the_third, &visits), STOP);
    assert_int_equal(visits, 3);
    free_all(cache, objects, 1000);
    destroy_empty(cache);
}

static struct prudence_cache *victim;
static unsigned left_to_free;

/* Frees, defers, allocates, walks, forks, and in the end destroys the walked cache. */
static int change(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                  void *context)
{
    pid_t child;

    (void)slab, (void)context;
    if (!victim || object)
        return 0;
    if (left_to_free) {
        free_all(victim, objects + left_to_free - 500, 500);
        left_to_free -= 500;
        prudence_free_deferred(prudence_malloc(60000));
        equals_statistics(victim);
        child = fork();
        if (child == 0) {
            equals_statistics(victim);
            _exit(0);
        }
        assert_int_equal(status_of(child), 0);
        return 0;
    }
    assert_int_equal(prudence_cache_destroy(victim), 0);
    victim = NULL;
    return 0;
}

TEST(visitors_change_the_heap)
{
    victim = prudence_cache_create("victim", 1000, NULL);
    allocate_all(victim, objects, 4000);
    left_to_free = 4000;
    assert_int_equal(prudence_heap_walk(victim, change, NULL), 0);
    assert_null(victim);
}

/* ------------------------------------------------------------------------------------ waits of a
 * walk */

static uint32_t finished;

static void *walk_elsewhere(void *cache)
{
    unsigned slabs = 0;

    assert_int_equal(prudence_heap_walk(cache, skip_all, &slabs), 0);
    assert_true(slabs > 0);
    store_release(&finished, 1u);
    return NULL;
}

static pthread_t start_walk(struct prudence_cache *cache)
{
    pthread_t thread;

    store_release(&finished, 0u);
    assert_int_equal(pthread_create(&thread, NULL, walk_elsewhere, cache), 0);
    return thread;
}

/* Waits until the walk has stopped carriers, beyond which the walk does not get here. */
static void wait_for_stop(void)
{
    while (os_in_flight_try()) {
        os_in_flight_end();
        assert_false(load_acquire(&finished));
        pause_ms(1);
    }
}

static bool is_idle(unsigned cpu)
{
    return true;
}

/* This thread owns a line of the cache. While the walk waits for this thread, no thread carries and
 * the helper moves nothing. */
TEST(a_walk_owns_cpus_and_stops_what_carries)
{
    struct prudence_cache *cache = fixed_cache(64, 32, manual_domain());
    struct prudence_cache *served = fixed_cache(64, 32, manual_domain());
    unsigned held = 100;
    struct cpu_cache *cpu;
    pthread_t thread;

    allocate_all(cache, objects + 100, 10);
    allocate_all(served, objects, held);
    while (stack_count(&cpu_here(served)->line) < 32)
        free_all(served, &objects[--held], 1);
    defer_all(served, objects, 17);
    cpu = cpu_cache_take(cache, &thread);
    assert_non_null(cpu);
    thread = start_walk(cache);
    wait_for_stop();
    posix_idle_inject(is_idle);
    preflush_enabled = true;
    preflush_schedule(served, cpu_here(served));
    preflush_enabled = false;
    preflush_work();
    assert_int_equal(stats_of(served).preflushed_objects, 0);
    assert_false(load_acquire(&finished));
    cpu_cache_release(cpu);
    pthread_join(thread, NULL);
    preflush_work();
    assert_true(stats_of(served).preflushed_objects > 0);
    posix_idle_inject(NULL);
    free_all(cache, objects + 100, 10);
    free_all(served, objects + 17, held - 17);
    destroy_empty(cache);
    destroy_empty(served);
}

static const void *changing;

static int look_for_changing(const struct prudence_heap_slab *slab,
                             const struct prudence_heap_object *object, void *found)
{
    *(unsigned *)found += object && object->address == changing;
    return 0;
}

/* The page source calls this half way through a resize. This thread holds nothing, so no thread
 * waits for it. */
static bool walk_during_resize(void)
{
    unsigned found = 0;

    os_memory_fails = NULL;
    assert_int_equal(prudence_heap_walk(NULL, look_for_changing, &found), 0);
    assert_int_equal(found, 0);
    pthread_join(start_walk(NULL), NULL);
    assert_true(load_acquire(&finished));
    return false;
}

TEST(a_walk_leaves_out_a_block_that_changes)
{
    void *block = prudence_malloc(200000);
    unsigned found = 0;

    changing = block;
    assert_int_equal(prudence_heap_walk(NULL, look_for_changing, &found), 0);
    assert_int_equal(found, 1);
    os_memory_fails = walk_during_resize;
    block = prudence_realloc(block, 300000);
    assert_null(os_memory_fails);
    assert_non_null(block);
    changing = block;
    assert_int_equal(prudence_heap_walk(NULL, look_for_changing, &found), 0);
    assert_int_equal(found, 2);
    prudence_free(block);
}

/* ---------------------------------------------------------------------------------- destructors */

static struct prudence_cache *destructs;
static unsigned in_destructor, resting_seen;

static void walk_inside(void *object, void *context)
{
    if (in_destructor++)
        return;
    walk(destructs);
    assert_state(object, PRUDENCE_OBJECT_LIVE, -1);
    resting_seen = (unsigned)shown.sum.resting;
    assert_int_equal(shown.sum.live, 1);
}

/* A thread has taken several objects out of their slab. One destructor runs, and the other objects
 * wait for theirs. */
TEST(objects_before_their_destructor_rest)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_cache_attr attr = {
        .size = sizeof attr, .destructor = walk_inside, .domain = domain};

    destructs = prudence_cache_create("destructs", 512, &attr);
    allocate_all(destructs, objects, 20);
    defer_all(destructs, objects, 20);
    prudence_cache_shrink(destructs); /* closes the batch */
    prudence_manual_advance(domain);
    prudence_cache_shrink(destructs);
    assert_true(in_destructor >= 20);
    assert_true(resting_seen >= 5);
    walk(destructs);
    assert_int_equal(shown.sum.live + shown.sum.resting + shown.sum.latent, 0);
    assert_int_equal(prudence_cache_destroy(destructs), 0);
}

/* ---------------------------------------------------------------------------------------- objects
 * kept back */

static void set(const char *option, const char *value)
{
    if (prudence_option_set(option, value))
        abort();
}

/* Runs in a child, before its first cache. */
static void kept_back(void *option)
{
    struct prudence_cache *cache;
    void *freed[8], *live;

    set(option, strcmp(option, "quarantine") == 0 ? "64K" : "1");
    cache = prudence_cache_create(
        "kept back", 64,
        &(struct prudence_cache_attr){.size = sizeof(struct prudence_cache_attr),
                                      .domain = manual_domain()});
    allocate_all(cache, freed, 8);
    live = prudence_cache_alloc(cache);
    free_all(cache, freed, 8);
    equals_statistics(cache);
    assert_int_equal(shown.sum.live, 1);
    assert_state(live, PRUDENCE_OBJECT_LIVE, -1);
    for (unsigned i = 0; i < 8; i++)
        assert_int_not_equal(shown_as(freed[i])->state, PRUDENCE_OBJECT_LIVE);
    if (strcmp(option, "check") != 0)
        assert_true(shown.sum.resting > 0);
    defer_all(cache, &live, 1);
    walk(cache);
    assert_int_equal(shown_as(live)->state, PRUDENCE_OBJECT_LATENT);
    assert_int_equal(shown.sum.live, 0);
}

static void guarded(void)
{
    struct prudence_cache *cache;
    unsigned large = 0;

    set("guard", "2");
    cache = fixed_cache(64, 16, manual_domain());
    allocate_all(cache, objects, 40);
    equals_statistics(cache);
    for (unsigned i = 0; i < 40; i++) {
        assert_state(objects[i], PRUDENCE_OBJECT_LIVE, -1);
        large += ((uintptr_t)objects[i] & 4095) == 0 || (((uintptr_t)objects[i] + 64) & 4095) == 0;
    }
    assert_true(shown.slabs > 5 && large > 5);
    defer_all(cache, objects, 40);
    walk(cache);
    assert_int_equal(shown.sum.latent, 40);
}

static int read_whole(const struct prudence_heap_slab *slab,
                      const struct prudence_heap_object *object, void *sum)
{
    const unsigned char *bytes = object ? object->address : NULL;

    if (object && object->state == PRUDENCE_OBJECT_LIVE &&
        bytes + object->size > (const unsigned char *)slab->pages + slab->bytes)
        return 1;
    for (uint64_t i = 0; object && object->state == PRUDENCE_OBJECT_LIVE && i < object->size; i++)
        *(unsigned *)sum += bytes[i];
    return 0;
}

/* A visitor may read each live object, even one in front of a closed page. */
static void read_all(void *option)
{
    unsigned sum = 0;

    set(option, "1");
    for (size_t size = 0; size < 200000; size += 1 + size / 3)
        for (unsigned i = 0; i < 4; i++)
            assert_non_null(prudence_malloc(size));
    assert_int_equal(prudence_heap_walk(NULL, read_whole, &sum), 0);
}

/* First, because these are start options. */
TEST_FIRST(extensions_keep_objects_back)
{
    static const char *const options[] = {"quarantine", "shuffle", "check", "hardened"};

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        expect_survival(kept_back((void *)options[i]), "");
    expect_survival(guarded(), "");
}

/* First, because these are start options. */
TEST_FIRST(live_objects_can_be_read)
{
    static const char *const options[] = {"guard",     "hardened",    "guard_empty", "guard_large",
                                          "red_zones", "guard_first", "profile"};

    for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++)
        expect_survival(read_all((void *)options[i]), "");
}

/* ------------------------------------------------------------------------------------- refusals */

static int unreachable(const struct prudence_heap_slab *slab,
                       const struct prudence_heap_object *object, void *context)
{
    (void)slab, (void)object, (void)context;
    fail_msg("a visit");
    return 0;
}

TEST(refusals)
{
    struct prudence_cache *cache = prudence_cache_create("gone", 100, NULL);

    assert_int_equal(prudence_heap_walk(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_heap_walk_sized(NULL, unreachable, NULL, 513, 8), EINVAL);
    assert_int_equal(prudence_heap_walk_sized(NULL, unreachable, NULL, 8, 513), EINVAL);
    memory_fail(0, 1);
    assert_int_equal(prudence_heap_walk(NULL, unreachable, NULL), ENOMEM);
    memory_succeed();
    os_lock_take(&slab_caches_lock); /* as a signal handler finds it */
    assert_int_equal(prudence_heap_walk(NULL, unreachable, NULL), EDEADLK);
    os_lock_release(&slab_caches_lock);
    os_lock_forking = true; /* as a fork handler finds it */
    assert_int_equal(prudence_heap_walk(NULL, unreachable, NULL), EBUSY);
    os_lock_forking = false;
    assert_int_equal(prudence_cache_destroy(cache), 0);
    expect_death(prudence_heap_walk(cache, unreachable, NULL), "prudence_heap_walk", "gone",
                 "was destroyed");
    assert_int_equal(prudence_heap_print(NULL, NULL, PRUDENCE_STATS_TEXT), EINVAL);
    assert_int_equal(prudence_heap_print(NULL, stderr, (enum prudence_stats_format)2), EINVAL);
}

/* Programs compiled with shorter and with longer structures. */
static int sized(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                 void *size)
{
    const unsigned char *bytes = (const unsigned char *)(object ? (const void *)object : slab);
    size_t end = *(size_t *)size;

    if (end > sizeof *slab)
        for (size_t i = object ? sizeof *object : sizeof *slab; i < end; i++)
            assert_int_equal(bytes[i], 0);
    return 0;
}

TEST(other_versions)
{
    size_t small = 16, large = 512;

    prudence_free(prudence_malloc(10));
    assert_int_equal(prudence_heap_walk_sized(NULL, sized, &small, small, small), 0);
    assert_int_equal(prudence_heap_walk_sized(NULL, sized, &large, large, large), 0);
}

/* ------------------------------------------------------------------------------------- printing */

TEST(lines_and_runs)
{
    struct prudence_cache *cache = fixed_cache(512, 4, manual_domain());
    static char text[4000];
    FILE *file = fmemopen(text, sizeof text, "w");

    allocate_all(cache, objects, 5);
    node_put_latent(slab_of(objects[0]), objects[0], false);
    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_JSON), 0);
    fclose(file);
    expect_text(text, "[{\"pages\":\"0x");
    expect_text(text, "\"objects\":");
    expect_text(text, "\"latent\":1");
    expect_text(text, "\"states\":\"1D4L");
    assert_string_equal(text + strlen(text) - 4, "\"}]\n");
    file = fmemopen(text, sizeof text, "w");
    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_TEXT), 0);
    fclose(file);
    expect_text(text, "objects of 512 bytes");
    expect_text(text, " 1 latent,");
    free_all(cache, objects + 1, 4);
    destroy_empty(cache);
    cache = prudence_cache_create("empty", 100, NULL);
    file = fmemopen(text, sizeof text, "w");
    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_JSON), 0);
    fclose(file);
    assert_string_equal(text, "[]\n");
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

SUITE(pin_thread())
