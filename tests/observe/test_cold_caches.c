/* SPDX-License-Identifier: MIT */
/*
 * A cache beyond the first `cold_after` begins cold, with objects in slabs that other caches share,
 * and becomes warm when it is used more than others. Wherever the objects are, the cache counts
 * them, and wrong and double frees are found. A deferred object waits for its readers.
 *
 * ctest: inlined-too
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include <prudence/heap_walk.h>

#include "gp/user/domain.h"
#include "heap/cold.h"
#include "mapping.h"
#include "slab/all_caches.h"
#include "slab/slab.h"
#include "support/process_memory.h"
#include "support/slab_test.h"
#include "support/step.h"
#include "support/threads.h"

#define ROUND COLD_ROUND
#define BUSY  1024 /* as in heap/cold.c */

static struct prudence_cache *create(size_t size)
{
    struct prudence_cache *cache = prudence_cache_create("cold", size, NULL);

    assert_non_null(cache);
    return cache;
}

static struct prudence_cache *create_cold(size_t size)
{
    struct prudence_cache *cache = create(size);

    assert_true(cache_is_cold(cache));
    return cache;
}

static void *allocate(struct prudence_cache *cache)
{
    void *object = prudence_cache_alloc(cache);

    assert_non_null(object);
    return object;
}

static void destroy(struct prudence_cache *cache)
{
    assert_int_equal(prudence_cache_destroy(cache), 0);
}

static bool is_common(const void *object)
{
    return slab_of(object)->cache->flags & CACHE_COMMON;
}

/* Allocates and frees until the cache is warm. Returns the number of pairs. */
static unsigned warm_up(struct prudence_cache *cache)
{
    unsigned pairs = 0;

    for (; cache_is_cold(cache) && pairs < 10 * ROUND; pairs++)
        prudence_cache_free(cache, allocate(cache));
    return pairs;
}

static int all_are_cold(void **state)
{
    (void)state;
    cold_after = 0;
    return 0;
}

static int as_usual(void **state)
{
    (void)state;
    cold_after = 256;
    return 0;
}

#define COLD_TEST(name) TEST(name, all_are_cold, as_usual)

/* The system refuses memory, so the structures of most lie in the library's first metadata. The 64
 * caches that were destroyed last keep theirs. */
TEST_FIRST(caches_without_memory_for_structures, all_are_cold, as_usual)
{
    static struct prudence_cache *caches[2000];
    struct rlimit before, limit;
    unsigned count = 0;

    destroy(create_cold(64)); /* makes the common cache */
    getrlimit(RLIMIT_AS, &before);
    limit = before;
    limit.rlim_cur = address_space();
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    while (count < 2000 && (caches[count] = prudence_cache_create("cold", 64, NULL)))
        count++;
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_in_range(count, 500, 1999); /* one mapped chunk has fewer */
    while (count)
        destroy(caches[--count]);
    for (unsigned i = 0; i < 64; i++)
        destroy(create_cold(64));
}

/* ------------------------------------------------------------------------------- which are cold */

TEST(the_first_caches_are_warm)
{
    struct prudence_cache *caches[260];
    unsigned cold = 0;

    for (unsigned i = 0; i < 260; i++)
        caches[i] = create(64);
    for (unsigned i = 0; i < 260; i++) {
        assert_true(!cold || cache_is_cold(caches[i]));
        cold += cache_is_cold(caches[i]);
    }
    assert_int_equal(cold, 4);
    for (unsigned i = 0; i < 260; i++)
        destroy(caches[i]);
}

static void construct(void *object, void *context)
{
    (void)object;
    (void)context;
}

COLD_TEST(caches_with_wishes_are_warm)
{
    struct prudence_domain *domain = manual_domain();
    const struct prudence_cache_attr attrs[] = {
        {.size = sizeof attrs[0], .flags = PRUDENCE_CACHE_TYPESAFE},
        {.size = sizeof attrs[0], .constructor = construct},
        {.size = sizeof attrs[0], .destructor = construct},
        {.size = sizeof attrs[0], .domain = domain},
        {.size = sizeof attrs[0], .object_cache_bytes = 4096},
        {.size = sizeof attrs[0], .alignment = 128},
    };
    struct prudence_cache *cache;

    for (unsigned i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        cache = prudence_cache_create("warm", 64, &attrs[i]);
        assert_non_null(cache);
        assert_false(cache_is_cold(cache));
        destroy(cache);
    }
    cache = create(513);
    assert_false(cache_is_cold(cache));
    destroy(cache);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* -------------------------------------------------------------------------------------- objects */

COLD_TEST(objects_of_all_sizes_and_alignments)
{
    for (size_t size = 1; size <= 512; size++)
        for (size_t alignment = 8; alignment <= 64; alignment *= 8) {
            const struct prudence_cache_attr attr = {.size = sizeof attr, .alignment = alignment};
            struct prudence_cache *cache = prudence_cache_create("cold", size, &attr);
            void *objects[20];

            for (unsigned i = 0; i < 20; i++) {
                objects[i] = allocate(cache);
                assert_int_equal((uintptr_t)objects[i] % alignment, 0);
                assert_true(prudence_usable_size(objects[i]) >= size);
                fill_pattern(objects[i], size);
            }
            for (unsigned i = 0; i < 20; i++) {
                assert_true(has_pattern(objects[i], size));
                prudence_cache_free(cache, objects[i]);
            }
            destroy(cache);
        }
}

COLD_TEST(a_cold_cache_counts_its_objects)
{
    struct prudence_cache *cache = create_cold(64), *other = create_cold(64);
    void *objects[3] = {allocate(cache), allocate(cache), allocate(cache)};
    void *others = allocate(other);
    struct prudence_cache_stats stats;

    assert_ptr_equal(cache->body, cache->common->body);
    assert_true(is_common(objects[0]) && slab_of(objects[0]) == slab_of(others));
    prudence_cache_free(cache, objects[0]);
    prudence_free_deferred(objects[1]);
    stats = stats_of(cache);
    assert_int_equal(stats.allocations, 3);
    assert_int_equal(stats.frees, 1);
    assert_int_equal(stats.deferred_frees, 1);
    assert_int_equal(stats.objects_live, 1);
    assert_int_equal(stats.slabs_now, 0); /* counted at the common cache */
    assert_int_equal(stats.slabs_peak, 0);
    assert_int_equal(stats.refills, 0);
    assert_int_equal(stats.objects_cached, 0);
    assert_true(stats_of(cache->common).slabs_now > 0);
    assert_int_equal(stats_of(other).objects_live, 1);
    assert_int_equal(stats_of(cache->common).objects_live, 0); /* none counts twice */
    assert_int_equal(prudence_cache_destroy(cache), EBUSY);
    prudence_free(objects[2]);
    prudence_cache_free(other, others);
    destroy(other);
    destroy(cache);
}

COLD_TEST(bulks_and_replacements)
{
    struct prudence_cache *cache = create_cold(40);
    void *objects[100], *object;

    assert_int_equal(prudence_cache_alloc_bulk(cache, 100, objects), 100);
    assert_int_equal(prudence_cache_replace_bulk(cache, 100, objects), 100);
    object = prudence_cache_replace(cache, objects[0]);
    assert_non_null(object);
    objects[0] = object;
    prudence_cache_free_bulk(cache, 50, objects);
    prudence_cache_free_deferred_bulk(cache, 50, objects + 50);
    assert_int_equal(stats_of(cache).objects_live, 0);
    assert_int_equal(stats_of(cache).allocations, 201);
    destroy(cache);
}

#define FEW (ROUND - 4) /* fewer than make a cache warm */

COLD_TEST(a_deferred_object_waits_for_readers)
{
    struct prudence_cache *cache = create_cold(80); /* a size that no other test defers */
    void *objects[FEW], *deferred = allocate(cache);

    fill_pattern(deferred, 80);
    prudence_read_lock();
    prudence_cache_free_deferred(cache, deferred);
    for (unsigned i = 0; i < FEW; i++) {
        objects[i] = allocate(cache);
        assert_ptr_not_equal(objects[i], deferred);
    }
    prudence_cache_shrink(cache);
    assert_true(has_pattern(deferred, 80));
    assert_int_equal(stats_of(cache->common).objects_latent, 1);
    assert_int_equal(prudence_cache_destroy(cache), EDEADLK);
    prudence_read_unlock();
    assert_int_equal(prudence_cache_barrier(cache), 0);
    assert_int_equal(stats_of(cache->common).objects_latent, 0);
    assert_true(cache_is_cold(cache));
    free_all(cache, objects, FEW);
    destroy(cache);
}

/* --------------------------------------------------------------------------------------- misuse */

/* The name went with the cache. */
static void free_after_destruction(void)
{
    struct prudence_cache *cache = create_cold(64);
    void *object = allocate(cache);

    prudence_cache_free(cache, object);
    destroy(cache);
    prudence_free(object);
}

COLD_TEST(misuse_is_found)
{
    struct prudence_cache *cache = create_cold(64);
    char *object = allocate(cache);

    expect_death(prudence_cache_free(create(64), object), "belongs to cache 'cold', not to 'cold'");
    expect_death((prudence_free(object), prudence_free(object)), "double free", "of cache 'cold'");
    expect_death((prudence_free_deferred(object), prudence_free(allocate(create(64))),
                  prudence_free_deferred(object)),
                 "double free", "of cache 'cold'");
    expect_death((prudence_free_deferred(object), prudence_free(object)), "double free",
                 "of cache 'cold'");
    expect_death(prudence_free(object + 8), "object of cache 'cold', 8 bytes after its start");
    expect_death(prudence_cache_free(cache, (char *)allocate(cache) + 8),
                 "object of cache 'cold', 8 bytes");
    expect_death(free_after_destruction(), "double free", "of cache 'common-64'");
    prudence_cache_free(cache, object);
    expect_death((prudence_cache_destroy(cache), allocate(cache)), "cache 'cold'", "was destroyed");
    destroy(cache);
}

/* -------------------------------------------------------------------------------------- warming */

COLD_TEST(a_cache_that_is_used_becomes_warm)
{
    struct prudence_cache *cache = create_cold(64);
    void *first = allocate(cache), *second = allocate(cache), *object;

    assert_int_equal(warm_up(cache), ROUND - 1);
    object = allocate(cache);
    assert_ptr_equal(slab_of(object)->cache, cache);
    assert_int_equal(stats_of(cache).objects_live, 3);
    prudence_cache_free(cache, object);
    assert_int_equal(prudence_cache_destroy(cache), EBUSY); /* two are in common slabs */
    prudence_cache_free(cache, first);
    prudence_cache_free_deferred(cache, second);
    assert_int_equal(stats_of(cache).objects_live, 0);
    check_books(cache);
    assert_int_equal(prudence_cache_barrier(cache), 0);
    destroy(cache);
}

struct shown {
    unsigned slabs, objects, others;
    const void *expected[2];
};

static int show(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                void *of)
{
    struct shown *shown = of;

    if (!object) {
        shown->slabs++;
        assert_int_equal(slab->objects, slab->live);
    } else if (object->state == PRUDENCE_OBJECT_LIVE &&
               (object->address == shown->expected[0] || object->address == shown->expected[1])) {
        shown->objects++;
    } else {
        shown->others++;
    }
    return 0;
}

/* Neither the other cache's objects in the same slabs, nor those that are free. Also once the cache
 * is warm, and then those in slabs of its own. */
COLD_TEST(a_walk_shows_the_live_objects_of_the_cache)
{
    struct prudence_cache *cache = create_cold(64), *other = create_cold(64);
    struct shown shown = {.expected = {prudence_cache_alloc(cache), prudence_cache_alloc(cache)}};
    void *of_other = prudence_cache_alloc(other), *freed = prudence_cache_alloc(cache);

    prudence_cache_free(cache, freed);
    assert_int_equal(prudence_heap_walk(cache, show, &shown), 0);
    assert_true(shown.slabs > 0);
    assert_int_equal(shown.objects, 2);
    assert_int_equal(shown.others, 0);
    warm_up(cache);
    prudence_cache_shrink(cache);
    shown.objects = 0;
    assert_int_equal(prudence_heap_walk(cache, show, &shown), 0);
    assert_int_equal(shown.objects, 2);
    prudence_cache_free(cache, (void *)shown.expected[0]);
    prudence_cache_free(cache, (void *)shown.expected[1]);
    prudence_cache_free(other, of_other);
    destroy(cache);
    destroy(other);
}

/* A slab of other caches' objects alone. */
COLD_TEST(a_shared_slab_without_objects_is_printed_whole)
{
    static const char end[] =
        "\"objects\":0,\"live\":0,\"cached\":0,\"latent\":0,\"free\":0,"
        "\"resting\":0,\"states\":\"\"}]\n";
    struct prudence_cache *cache = create_cold(64), *other = create_cold(64);
    void *of_other = allocate(other);
    static char text[20000];
    FILE *file = fmemopen(text, sizeof text, "w");

    assert_int_equal(prudence_heap_print(cache, file, PRUDENCE_STATS_JSON), 0);
    fclose(file);
    assert_true(strlen(text) > strlen(end));
    assert_string_equal(text + strlen(text) - strlen(end), end);
    prudence_cache_free(other, of_other);
    destroy(cache);
    destroy(other);
}

/* The structures, too, although metadata stays mapped. */
COLD_TEST(the_memory_of_cold_caches_goes_back)
{
    static struct prudence_cache *caches[10000];
    const uint64_t before = metadata_bytes();
    uint64_t most;

    for (unsigned i = 0; i < 10000; i++)
        caches[i] = create_cold(64);
    most = metadata_bytes() - before;
    assert_in_range(most, 10000 * 180, 10000 * 256);
    for (unsigned i = 0; i < 10000; i++)
        destroy(caches[i]);
    assert_true(metadata_bytes() - before <= most / 10);
}

COLD_TEST(thousands_of_caches_stay_cold)
{
    static struct prudence_cache *caches[2 * BUSY];
    const unsigned count = sizeof caches / sizeof caches[0];

    for (unsigned i = 0; i < count; i++)
        caches[i] = create_cold(64);
    for (unsigned pair = 0; pair < 3 * ROUND; pair++)
        for (unsigned i = 0; i < count; i++)
            prudence_cache_free(caches[i], allocate(caches[i]));
    for (unsigned i = 0; i < count; i++)
        assert_true(cache_is_cold(caches[i]));
    assert_true(warm_up(caches[7]) <= 2 * ROUND); /* it makes all allocations now */
    for (unsigned i = 0; i < count; i++) {
        assert_true(cache_is_cold(caches[i]) == (i != 7));
        destroy(caches[i]);
    }
}

COLD_TEST(lists_are_in_the_order_of_numbers)
{
    struct prudence_cache *caches[4];
    struct prudence_walk walk = {.after = {0}};
    struct prudence_cache_stats stats;
    struct list *item;
    uint64_t last = 0;
    unsigned found = 0;

    for (unsigned i = 0; i < 4; i++)
        caches[i] = create_cold(64);
    warm_up(caches[2]);
    warm_up(caches[1]);
    list_for_each(item, &slab_caches)
    {
        assert_true(list_entry(item, struct prudence_cache, link)->number > last);
        last = list_entry(item, struct prudence_cache, link)->number;
    }
    for (last = 0; !prudence_next_cache(&walk, &stats); last = walk.after[0]) {
        assert_true(walk.after[0] > last);
        found += !strcmp(stats.name, "cold");
    }
    assert_int_equal(found, 4);
    for (unsigned i = 0; i < 4; i++)
        destroy(caches[i]);
}

#if STEP_POSSIBLE

static struct prudence_cache *watched;
static const struct cache_body *shared;
static unsigned visits, visits_own, visits_warm, visits_free;

/* What another thread could see of a cache that becomes warm: it is never destroyed, is cold until
 * all that a warm one needs is there, and has the extension as long as it is cold. */
static void look_at_watched(const greg_t *registers)
{
    bool cold = cache_is_cold(watched), own = watched->body != shared;

    (void)registers;
    visits++;
    visits_own += own;
    visits_warm += !cold;
    visits_free += !watched->extensions;
    if (cache_is_destroyed(watched) || !watched->body->nodes || !watched->percpu ||
        (!cold && (!own || watched->percpu == os_percpu_owned_lines)) ||
        (watched->percpu != os_percpu_owned_lines && !own) || (cold && !watched->extensions))
        abort();
}

static void use_once(void *cache)
{
    prudence_cache_free(cache, allocate(cache));
}

#endif

COLD_TEST(a_cache_is_cold_or_warm_at_each_step)
{
#if STEP_POSSIBLE
    watched = create_cold(64);
    for (unsigned i = 0; i < ROUND; i++)
        use_once(watched);
    shared = watched->body;
    assert_ptr_equal(shared, watched->common->body);
    step_through(use_once, watched, look_at_watched);
    assert_true(visits > visits_own && visits_own > visits_warm && visits_warm > visits_free);
    assert_false(cache_is_cold(watched));
    destroy(watched);
#else
    skip();
#endif
}

/* Makes as many allocations as lead to a check of the cache, the last one without memory from that
 * call on, and frees them. */
static void look_without_memory(struct prudence_cache *cache, unsigned call)
{
    for (unsigned i = 1; i < ROUND; i++)
        prudence_cache_free(cache, allocate(cache));
    memory_fail(call, 1);
    prudence_cache_free(cache, allocate(cache));
    memory_succeed();
    assert_int_equal(memory_calls, call + 1);
    assert_true(cache_is_cold(cache));
}

/* Without memory for nodes or lines the cache stays cold, and the object is allocated. What it
 * was to have is given back. */
COLD_TEST(no_memory_to_become_warm)
{
    struct prudence_cache *cache = create_cold(64);
    struct prudence_stats before, after;

    prudence_cache_free(cache, allocate(cache));
    assert_int_equal(prudence_stats(&before), 0);
    for (unsigned i = 0; i < 1000; i++) {
        look_without_memory(cache, 0);
        look_without_memory(cache, 1);
    }
    assert_int_equal(prudence_stats(&after), 0);
    assert_int_equal(after.metadata_bytes, before.metadata_bytes);
    assert_int_equal(warm_up(cache), ROUND);
    destroy(cache);
}

COLD_TEST(no_memory_for_an_object)
{
    struct prudence_cache *cache = create_cold(496);
    static void *objects[OBJECTS_MAX];
    unsigned count = 0;

    memory_fail(0, UINT_MAX);
    while (count < OBJECTS_MAX && (objects[count] = prudence_cache_alloc(cache)))
        count++;
    assert_int_equal(errno, ENOMEM);
    memory_succeed();
    assert_int_equal(stats_of(cache).objects_live, count);
    prudence_cache_free(cache, allocate(cache));
    free_all(cache, objects, count);
    destroy(cache);
}

/* ------------------------------------------------------------------------------- other threads */

#define THREADS 4
#define CACHES  8
#define PAIRS   20000

static struct prudence_cache *used[CACHES];

/* Frees some of the objects of each cache long after the cache has become warm. */
static void *use_all(void *number)
{
    void *kept[CACHES] = {NULL};
    unsigned own = (unsigned)(uintptr_t)number;

    for (unsigned i = 0; i < PAIRS; i++) {
        struct prudence_cache *cache = used[(i + own) % CACHES];
        uintptr_t *object = allocate(cache);
        void **keep = &kept[(i + own) % CACHES];

        *object = (uintptr_t)object ^ own;
        if (!*keep || i % 64 == 0) {
            if (*keep)
                prudence_free(*keep);
            *keep = object;
            continue;
        }
        assert_true(*object == ((uintptr_t)object ^ own));
        if (i % 2)
            prudence_cache_free_deferred(cache, object);
        else
            prudence_cache_free(cache, object);
    }
    for (unsigned i = 0; i < CACHES; i++)
        prudence_cache_free(used[i], kept[i]);
    return NULL;
}

COLD_TEST(caches_become_warm_while_threads_use_them)
{
    pthread_t threads[THREADS];

    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < CACHES; i++)
            used[i] = create_cold(64);
        threads_start(threads, THREADS, use_all);
        threads_join(threads, THREADS);
        for (unsigned i = 0; i < CACHES; i++) {
            assert_false(cache_is_cold(used[i]));
            assert_int_equal(stats_of(used[i]).allocations, THREADS * PAIRS / CACHES);
            check_books(used[i]);
            destroy(used[i]);
        }
    }
}

COLD_TEST(a_child_goes_on)
{
    struct prudence_cache *cold = create_cold(64), *warm = create_cold(64);
    void *objects[4] = {allocate(cold), allocate(cold), allocate(warm), allocate(warm)};
    int status;
    pid_t child;

    warm_up(warm);
    prudence_cache_free_deferred(cold, objects[0]);
    child = fork();
    assert_true(child >= 0);
    if (!child) {
        prudence_cache_free(cold, objects[1]);
        prudence_cache_free(warm, objects[2]);
        prudence_cache_free_deferred(warm, objects[3]);
        warm_up(cold);
        _exit(cache_is_cold(cold) || prudence_cache_destroy(cold) || prudence_cache_destroy(warm));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free_all(cold, objects + 1, 1);
    free_all(warm, objects + 2, 2);
    destroy(cold);
    destroy(warm);
}

SUITE()
