/* SPDX-License-Identifier: MIT */
/* See random_walk.h. */
#include "slab/preflush.h"
#include "slab/reclaim/drain.h"
#include "support/random.h"
#include "support/random_walk.h"
#include "support/test_seed.h"

#define SIZE  64
#define LIVE  3000
#define SLOTS 65536 /* of the model, hashed by address */

struct entry {
    void *object;
    uint64_t deferred_at; /* number of grace periods ended before the deferral */
    enum { UNKNOWN, IS_LIVE, IS_FREE, IS_DEFERRED } is;
};

static struct entry model[SLOTS];
static void *live[LIVE];
static unsigned live_count;
static uint64_t allocations, frees, deferrals, ended, seed;
static void (*sometimes)(struct prudence_cache *cache);

static struct entry *entry_of(void *object)
{
    unsigned i = (unsigned)((uintptr_t)object / SIZE * UINT64_C(11400714819323198485) >> 48);

    while (model[i].object && model[i].object != object)
        i = (i + 1) % SLOTS;
    model[i].object = object;
    return &model[i];
}

unsigned random_walk_choose(unsigned below)
{
    return random_below(&seed, below);
}

static void allocated(void *object)
{
    struct entry *entry = entry_of(object);

    if (entry->is == IS_LIVE)
        fail_msg("%p was handed out twice", object);
    if (entry->is == IS_DEFERRED) {
        if (ended <= entry->deferred_at)
            fail_msg("%p was handed out before its grace period", object);
        if (!has_pattern(object, SIZE))
            fail_msg("%p was written while it waited", object);
    }
    entry->is = IS_LIVE;
    fill_pattern(object, SIZE);
    live[live_count++] = object;
    allocations++;
}

static void *drop(void)
{
    unsigned i = random_walk_choose(live_count);
    void *object = live[i];

    live[i] = live[--live_count];
    return object;
}

static void allocate(struct prudence_cache *cache)
{
    void *some[40];
    size_t count = random_walk_choose(8) ? 1 : 1 + random_walk_choose(40);

    if (live_count + count > LIVE)
        return;
    if (count > 1) {
        assert_int_equal(prudence_cache_alloc_bulk(cache, count, some), count);
    } else {
        some[0] = prudence_cache_alloc(cache);
        assert_non_null(some[0]);
    }
    for (size_t i = 0; i < count; i++)
        allocated(some[i]);
}

static void give_back(struct prudence_cache *cache, bool defer)
{
    void *object;

    if (!live_count)
        return;
    object = drop();
    assert_true(has_pattern(object, SIZE));
    entry_of(object)->is = defer ? IS_DEFERRED : IS_FREE;
    entry_of(object)->deferred_at = ended;
    if (defer)
        prudence_cache_free_deferred(cache, object);
    else
        prudence_cache_free(cache, object);
    frees += !defer;
    deferrals += defer;
}

/* Does one operation; a higher `bias` (0 to 8) allocates more often. */
static void step(struct prudence_cache *cache, unsigned bias)
{
    switch (random_walk_choose(400)) {
    case 0:
        prudence_cache_shrink(cache);
        break;
    case 1:
        cache->body->quiet_checked_at = 0;
        drain_quiet_cpus(cache);
        break;
    case 2:
    case 3:
        preflush_cpu(cache, os_cpu_current(), 1 + random_walk_choose(3));
        break;
    case 4:
    case 5:
    case 6:
        prudence_manual_advance(cache->domain);
        ended++;
        break;
    case 7:
    case 8:
    case 9:
        sometimes(cache);
        break;
    default:
        if (random_walk_choose(16) < 4 + bias)
            allocate(cache);
        else
            give_back(cache, random_walk_choose(3) > 0);
    }
}

static void walk(unsigned room)
{
    struct prudence_cache *cache = fixed_cache(SIZE, room, manual_domain());

    memset(model, 0, sizeof model);
    live_count = 0;
    allocations = frees = deferrals = ended = 0;
    seed = room + test_seed(0) * 1000;
    for (unsigned leg = 0; leg < 200; leg++) {
        struct prudence_cache_stats stats;
        unsigned bias = random_walk_choose(9);

        for (unsigned i = 0; i < 500; i++)
            step(cache, bias);
        check_books(cache);
        stats = stats_of(cache);
        assert_int_equal(stats.allocations, allocations);
        assert_int_equal(stats.frees, frees);
        assert_int_equal(stats.deferred_frees, deferrals);
        assert_int_equal(stats.objects_live, live_count);
    }
    while (live_count)
        give_back(cache, random_walk_choose(2));
    assert_true(stats_of(cache).merged_objects > 0);
    destroy_empty(cache);
}

static void with_small_object_caches(void **state)
{
    (void)state;
    walk(16);
}

static void with_middling_object_caches(void **state)
{
    (void)state;
    walk(64);
}

static void with_sizes_that_follow_demand(void **state)
{
    (void)state;
    walk(0);
}

int random_walk_run(void (*now_and_then)(struct prudence_cache *cache))
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_small_object_caches),
        cmocka_unit_test(with_middling_object_caches),
        cmocka_unit_test(with_sizes_that_follow_demand),
    };

    sometimes = now_and_then;
    return cmocka_run_group_tests_name("random walk", tests, NULL, NULL);
}
