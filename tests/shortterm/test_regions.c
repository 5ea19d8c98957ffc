/* SPDX-License-Identifier: MIT */
/*
 * Regions: objects of a region overlap with nothing else and stay until the region's last date,
 * whichever thread and clock gave it. Then the region is gone, and the handle is refused for ever.
 * A large region is freed bit by bit.
 */
#include "slab/reclaim/limit.h"
#include "support/scm_test.h"
#include "support/slab_test.h"

#define HEAD sizeof(struct region_page)

#include "shortterm/regions.h"

static uint64_t real_ns = UINT64_C(1000000000000);

static uint64_t injected_time(void)
{
    return real_ns;
}

static struct scm_region *region_new(void)
{
    struct scm_region *region = scm_region_create();

    assert_non_null(region);
    return region;
}

static void *cut(struct scm_region *region, size_t size)
{
    void *object = scm_region_alloc(region, size);

    assert_non_null(object);
    memset(object, 0x5a, size);
    return object;
}

static bool is_alive(struct scm_region *region)
{
    return region_owner(region_at(region), region) != 0;
}

static void expect_no_memory_kept(void)
{
    scm_collect();
    assert_int_equal(region_info().regions, 0);
    assert_int_equal(region_info().bytes, 0);
    assert_int_equal(mem_info().num_dates, 0);
}

static void expect_ended(struct scm_region *region)
{
    errno = 0;
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EPERM);
    assert_int_equal(scm_region_refresh(region, 1), EPERM);
    assert_int_equal(scm_region_global_refresh(region, 1), EPERM);
    assert_int_equal(scm_region_unregister(region), 0);
    assert_false(is_alive(region));
}

/* ----------------------------------------------------------------------------------- allocating */

struct cut {
    unsigned char *object;
    size_t size;
};

static void fill(struct cut *cuts, unsigned count, struct scm_region *region, size_t largest)
{
    unsigned seed = 7;

    for (unsigned i = 0; i < count; i++) {
        cuts[i].size = (size_t)rand_r(&seed) % largest;
        cuts[i].object = scm_region_alloc(region, cuts[i].size);
        assert_non_null(cuts[i].object);
        assert_int_equal((uintptr_t)cuts[i].object % 16, 0);
        memset(cuts[i].object, (int)(i & 255), cuts[i].size);
    }
}

static void expect_filled(const struct cut *cuts, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        for (size_t j = 0; j < cuts[i].size; j++)
            if (cuts[i].object[j] != (i & 255))
                fail_msg("byte %zu of object %u of %zu bytes was overwritten", j, i, cuts[i].size);
}

/* Objects that fit into a small page; those that need a big one; those that no page can hold. */
TEST(objects_are_apart_and_stay, fresh)
{
    static const size_t largest[] = {100, 3000, 40000, 100000};
    static struct cut cuts[2][400];

    for (unsigned i = 0; i < sizeof largest / sizeof *largest; i++) {
        struct scm_region *region = region_new(), *other = region_new();

        assert_int_equal(scm_region_refresh(region, 1), 0);
        fill(cuts[0], 400, region, largest[i]);
        fill(cuts[1], 400, other, largest[i]);
        ticks(1);
        expect_filled(cuts[0], 400);
        ticks(1);
        expect_filled(cuts[1], 400);
        expect_ended(region);
        assert_int_equal(scm_region_unregister(other), 0);
        expect_no_memory_kept();
    }
}

TEST(one_follows_the_other, fresh)
{
    struct scm_region *region = region_new();
    char *first = cut(region, 1), *second = cut(region, 16), *third = cut(region, 0);

    assert_ptr_equal(second, first + 16);
    assert_ptr_equal(third, second + 16);
    assert_ptr_equal(cut(region, 17), third + 16);
    assert_ptr_equal(cut(region, 0), third + 48);
    assert_int_equal(scm_region_unregister(region), 0);
}

/* Uses pages to the last byte, and the last size that a page can hold. */
TEST(pages_are_used_to_their_ends, fresh)
{
    struct scm_region *region = region_new();
    uint64_t bytes = region_info().bytes, own = round_up(REGION_BIG + 1, os_page_size);

    cut(region, REGION_SMALL / 4);
    cut(region, REGION_SMALL * 3 / 4 - HEAD);
    assert_int_equal(region_info().bytes, bytes);
    cut(region, 1);
    assert_int_equal(region_info().bytes, 2 * bytes);
    cut(region, REGION_BIG - HEAD);
    assert_in_range(region_info().bytes, 2 * bytes + REGION_BIG, 3 * bytes + REGION_BIG);
    bytes = region_info().bytes;
    cut(region, REGION_BIG - HEAD + 1); /* a separate block */
    assert_int_equal(region_info().bytes, bytes + own);
    cut(region, 100); /* in the same page as before */
    assert_int_equal(region_info().bytes, bytes + own);
    assert_int_equal(scm_region_unregister(region), 0);
    expect_no_memory_kept();
}

/* The bytes lost at the ends of pages are fewer than those used, for any size of objects. */
TEST(little_is_lost_at_the_ends_of_pages, fresh)
{
    for (size_t size = 24; size <= 100000; size = size * 3 / 2) {
        struct scm_region *region = region_new();
        size_t used = 0;

        for (; used < 2000000; used += size)
            cut(region, size);
        assert_in_range(region_info().bytes, used, 2 * used);
        assert_int_equal(scm_region_unregister(region), 0);
        expect_no_memory_kept();
    }
}

/* Of the page in use and a new one, the region continues with the one that has more room. */
TEST(a_large_object_does_not_end_a_page, fresh)
{
    struct scm_region *region = region_new();
    char *before = cut(region, 2000), *large = cut(region, 32000), *after = cut(region, 2000);

    (void)large;
    assert_ptr_equal(after, before + 2000);
    assert_int_equal(scm_region_unregister(region), 0);
}

TEST(hopeless_sizes_are_refused, fresh)
{
    struct scm_region *region = region_new();

    for (unsigned bits = 48; bits <= 64; bits++) {
        errno = 0;
        assert_null(scm_region_alloc(region, bits == 64 ? SIZE_MAX : (size_t)1 << bits));
        assert_int_equal(errno, ENOMEM);
    }
    cut(region, 100);
    assert_int_equal(scm_region_unregister(region), 0);
    expect_no_memory_kept();
}

/* ---------------------------------------------------------------------------------------- dates */

TEST(all_of_it_has_one_descriptor, fresh)
{
    struct scm_region *region = region_new();

    for (unsigned i = 0; i < 1000; i++)
        cut(region, 100);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(scm_region_refresh(region, 2), 0);
        assert_int_equal(mem_info().num_dates, 1);
        assert_int_equal(mem_info().num_short_term, 1);
        ticks(1);
    }
    ticks(2);
    expect_ended(region);
    expect_no_memory_kept();
}

TEST(without_dates_it_stays_until_it_is_unregistered, fresh)
{
    struct scm_region *region = region_new();
    char *object = cut(region, 100);

    ticks(10);
    global_ticks(10);
    assert_int_equal(object[99], 0x5a);
    assert_int_equal(region_info().regions, 1);
    assert_int_equal(scm_region_unregister(region), 0);
    expect_ended(region);
    expect_no_memory_kept();
}

/* The region refuses allocations, but can be refreshed until its last date. */
TEST(unregistered_with_dates_it_ends_with_them, fresh)
{
    struct scm_region *region = region_new();
    char *object = cut(region, 100);

    assert_int_equal(scm_region_refresh(region, 1), 0);
    for (unsigned twice = 0; twice < 2; twice++) {
        assert_int_equal(scm_region_unregister(region), 0);
        assert_null(scm_region_alloc(region, 1));
        assert_int_equal(errno, EPERM);
    }
    ticks(1);
    assert_int_equal(scm_region_refresh(region, 3), 0);
    ticks(3);
    assert_int_equal(object[99], 0x5a);
    assert_true(is_alive(region));
    ticks(1);
    expect_ended(region);
    expect_no_memory_kept();
}

TEST(the_last_of_all_clocks_ends_it, fresh)
{
    struct scm_region *region = region_new();
    struct scm_clock *user = scm_clock_create(), *real;

    scm_real_time = injected_time;
    real = scm_clock_create_realtime(1);
    assert_int_equal(scm_region_refresh(region, 0), 0);
    assert_int_equal(scm_region_global_refresh(region, 0), 0);
    assert_int_equal(scm_region_clock_refresh(user, region, 0), 0);
    assert_int_equal(scm_region_clock_refresh(real, region, 50), 0);
    assert_int_equal(mem_info().num_dates, 4);
    assert_int_equal(scm_clock_tick(user), 0);
    ticks(1);
    cut(region, 100);
    global_ticks(4);
    cut(region, 100);
    real_ns += 50000000;
    ticks(1);
    cut(region, 100);
    real_ns += 2000000;
    ticks(1);
    expect_ended(region);
    assert_int_equal(scm_region_clock_refresh(user, region, 1), EPERM);
    assert_int_equal(scm_region_clock_refresh(NULL, region, 1), EINVAL);
    assert_int_equal(scm_clock_destroy(user), 0);
    assert_int_equal(scm_region_clock_refresh(user, region, 1), EPERM);
    assert_int_equal(scm_clock_destroy(real), 0);
    scm_real_time = os_clock_ns;
    expect_no_memory_kept();
}

/* Refreshes enough objects that a few calls do not process those after them on that date's list. */
static void refresh_others(unsigned extension)
{
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(scm_refresh(prudence_malloc(8), extension), 0);
}

static void refuses_when_it_has_expired(unsigned extension, unsigned refreshes)
{
    struct scm_region *region = region_new();

    refresh_others(extension);
    while (refreshes--)
        assert_int_equal(scm_region_refresh(region, extension), 0);
    ticks(extension);
    cut(region, 8);
    ticks(1);
    errno = 0;
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EPERM);
    assert_true(is_alive(region)); /* still */
    expect_no_memory_kept();
    expect_ended(region);
}

/* Gives a new thread time shortly before an epoch ends, then ticks through `epochs` epochs, to a
 * few ticks before the next. */
static void begin_before_an_epoch(unsigned before, unsigned epochs)
{
    scm_unregister_thread();
    ticks(epochs * STAMP_EPOCH);
    while ((scm_self->local.now + before) % STAMP_EPOCH)
        ticks(1);
}

/* The clock's stamps have a different owner after the tick at which an epoch ends. */
TEST(also_where_an_epoch_ends, fresh)
{
    collection("lazy");
    for (unsigned extension = 0; extension < 4; extension++) {
        for (unsigned before = 1; before < 7; before++) {
            begin_before_an_epoch(before, 0);
            refuses_when_it_has_expired(extension, 1 + before % 2);
        }
    }
    begin_before_an_epoch(1, 1);
    refuses_when_it_has_expired(0, 1);
}

/* The owner's date expires first, and is not yet processed when the other thread's date ends. */
TEST(when_others_keep_it_no_longer_nothing_is_allocated, fresh)
{
    for (unsigned before = 0; before < 2; before++) {
        struct scm_region *region;
        struct actor actor;

        collection("lazy");
        begin_before_an_epoch(1 + before, 0);
        region = region_new();
        actor_start(&actor);
        refresh_others(0);
        assert_int_equal(scm_region_refresh(region, 0), 0);
        assert_int_equal(refreshes(&actor, cut(region, 32), 0), 0);
        ticks(1);
        cut(region, 100); /* the actor's date keeps it */
        does(&actor, act_tick, NULL);
        does(&actor, act_tick, NULL);
        assert_null(scm_region_alloc(region, 8));
        assert_true(is_alive(region)); /* still */
        actor_end(&actor);
        expect_no_memory_kept();
        expect_ended(region);
    }
}

/* -------------------------------------------------------------------------------------- threads */

static int act_alloc(void *region)
{
    return scm_region_alloc(region, 8) ? 0 : errno;
}

static int act_region_unregister(void *region)
{
    return scm_region_unregister(region);
}

static int act_create(void *place)
{
    struct scm_region **region = place;

    *region = scm_region_create();
    return *region && scm_region_alloc(*region, 5000) ? 0 : errno;
}

static int act_region_refresh(void *region)
{
    return scm_region_refresh(region, 1);
}

TEST(another_thread_may_refresh_only, fresh)
{
    struct scm_region *region = region_new();
    char *object = cut(region, 10);
    struct actor actor;

    actor_start(&actor);
    assert_int_equal(does(&actor, act_alloc, region), EINVAL); /* the thread takes no part */
    assert_int_equal(does(&actor, act_region_refresh, region), 0);
    assert_int_equal(does(&actor, act_alloc, region), EPERM);
    assert_int_equal(does(&actor, act_region_unregister, region), EPERM);
    assert_int_equal(scm_region_refresh(region, 0), 0);
    ticks(5);
    assert_int_equal(object[9], 0x5a);
    cut(region, 10);
    assert_int_equal(does(&actor, act_tick, NULL), 0);
    assert_true(is_alive(region));
    assert_int_equal(does(&actor, act_tick, NULL), 0);
    expect_ended(region);
    actor_end(&actor);
    expect_no_memory_kept();
}

TEST(without_dates_it_outlives_its_thread, fresh)
{
    struct scm_region *region;
    struct actor actor;

    actor_start(&actor);
    assert_int_equal(does(&actor, act_create, &region), 0);
    actor_end(&actor);
    ticks(50);
    global_ticks(50);
    assert_true(is_alive(region));
    assert_int_equal(scm_region_refresh(region, 0), 0);
    ticks(1);
    expect_ended(region);
    expect_no_memory_kept();
}

TEST(unregistering_the_thread_ends_allocation, fresh)
{
    struct scm_region *region = region_new();

    assert_int_equal(scm_unregister_thread(), 0);
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(scm_region_unregister(region), EINVAL);
    assert_int_equal(scm_region_refresh(region, 0), 0); /* takes part again, as a new participant */
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EPERM);
    ticks(1);
    expect_ended(region);
    expect_no_memory_kept();
}

TEST(a_blocked_thread_is_refused, fresh)
{
    struct scm_region *region = region_new();

    assert_int_equal(scm_block_thread(), 0);
    assert_null(scm_region_create());
    assert_int_equal(errno, EPERM);
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EPERM);
    assert_int_equal(scm_region_refresh(region, 1), EPERM);
    assert_int_equal(scm_region_global_refresh(region, 1), EPERM);
    assert_int_equal(scm_region_unregister(region), EPERM);
    assert_int_equal(scm_resume_thread(), 0);
    cut(region, 8);
    assert_int_equal(scm_region_unregister(region), 0);
    expect_no_memory_kept();
}

/* ----------------------------------------------------------------------------------- bit by bit */

TEST(the_end_of_a_large_region_is_done_bit_by_bit, fresh)
{
    enum { BYTES = 10000000 };
    struct scm_region *region = region_new();
    uint64_t bytes, steps = 0;

    collection("lazy");
    for (unsigned i = 0; i < BYTES / 1000; i++)
        cut(region, 1000);
    assert_int_equal(scm_region_refresh(region, 0), 0);
    assert_int_equal(scm_tick(), 0);
    for (unsigned calls = 0; (bytes = region_info().bytes); calls++) {
        uint64_t before = scm_self->counts.steps;

        scm_free(scm_malloc(8));
        assert_true(scm_self->counts.steps - before <= REGION_PAGES_CALL);
        steps += scm_self->counts.steps - before;
        assert_true(calls <= BYTES / REGION_SMALL);
        if (calls > 1)
            assert_true(region_info().bytes < bytes);
    }
    assert_true(steps > BYTES / REGION_BIG);
    expect_no_memory_kept();
}

static int act_end_large(void *unused)
{
    struct scm_region *dated = region_new(), *other = region_new();

    for (unsigned i = 0; i < 1000; i++) {
        cut(dated, 1000);
        cut(other, 1000);
    }
    return scm_region_refresh(dated, 0) || scm_tick() || scm_region_unregister(other);
}

/* Ticks of another thread free it, and so does the next thread that takes part. */
TEST(what_an_ended_thread_has_not_freed_is_freed, fresh)
{
    for (unsigned heir = 0; heir < 2; heir++) {
        struct actor actor;

        collection("lazy");
        scm_unregister_thread();
        if (!heir)
            ticks(0);
        actor_start(&actor);
        assert_int_equal(does(&actor, act_end_large, NULL), 0);
        actor_end(&actor);
        assert_true(region_info().bytes > 1500000);
        ticks(200);
        expect_no_memory_kept();
    }
}

/* A thread that makes a region at each tick needs memory for only a few. */
TEST(memory_is_used_again, fresh)
{
    for (unsigned eager = 0; eager < 2; eager++) {
        collection(eager ? "eager" : "lazy");
        for (unsigned i = 0; i < 3000; i++) {
            struct scm_region *region = region_new();

            assert_int_equal(scm_region_refresh(region, 0), 0);
            for (unsigned j = 0; j < 50; j++)
                cut(region, 2000);
            assert_int_equal(scm_tick(), 0);
            assert_int_equal(scm_region_unregister(region), 0);
            assert_true(region_info().bytes < 4 * 50 * 2000);
        }
        expect_no_memory_kept();
    }
}

/* Few places are used, even if one thread makes regions and another one ends them. */
TEST(places_are_used_again, fresh)
{
    struct actor actor;
    uint32_t used;

    actor_start(&actor);
    does(&actor, act_register, NULL);
    used = region_places.used;
    for (unsigned i = 0; i < 1000; i++) {
        struct scm_region *region;

        assert_int_equal(does(&actor, act_create, &region), 0);
        assert_int_equal(scm_region_refresh(region, 0), 0);
        ticks(1);
    }
    assert_in_range(region_places.used, used, used + 64);
    actor_end(&actor);
    for (unsigned i = 0; i < 200; i++) {
        struct scm_region *region;

        actor_start(&actor);
        assert_int_equal(does(&actor, act_create, &region), 0);
        assert_int_equal(does(&actor, act_region_unregister, region), 0);
        actor_end(&actor);
    }
    ticks(500);
    assert_in_range(region_places.used, used, used + 64);
    expect_no_memory_kept();
}

/* ------------------------------------------------------------------------------ what is refused */

TEST(it_is_refused_for_ever, fresh)
{
    enum { REGIONS = 100 };
    struct scm_region *old[REGIONS], *now[REGIONS];

    for (unsigned i = 0; i < REGIONS; i++)
        old[i] = region_new();
    for (unsigned i = 0; i < REGIONS; i++)
        assert_int_equal(scm_region_unregister(old[i]), 0);
    for (unsigned i = 0; i < REGIONS; i++)
        now[i] = region_new();
    for (unsigned i = 0; i < REGIONS; i++) {
        expect_ended(old[i]);
        for (unsigned j = 0; j < REGIONS; j++)
            assert_ptr_not_equal(old[i], now[j]);
    }
    assert_int_equal(region_info().regions, REGIONS);
    for (unsigned i = 0; i < REGIONS; i++)
        assert_int_equal(scm_region_unregister(now[i]), 0);
    expect_no_memory_kept();
}

static void expect_none(void *region)
{
    errno = 0;
    assert_null(scm_region_alloc(region, 8));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(scm_region_refresh(region, 1), EINVAL);
    assert_int_equal(scm_region_global_refresh(region, 1), EINVAL);
    assert_int_equal(scm_region_unregister(region), EINVAL);
}

TEST(what_never_was_a_region_is_refused, fresh)
{
    struct scm_region *region = region_new();
    uint64_t value = (uint64_t)(uintptr_t)region;

    expect_none(NULL);
    expect_none((void *)(uintptr_t)(value + (UINT64_C(1) << 32)));
    expect_none((void *)(uintptr_t)(value & UINT32_MAX));
    expect_none((void *)(uintptr_t)UINT32_MAX);
    expect_none((void *)(uintptr_t)UINT64_MAX);
    expect_none(&value);
    expect_none(cut(region, 8));
    assert_int_equal(scm_region_unregister(region), 0);
}

TEST(an_extension_beyond_the_option_is_refused, fresh)
{
    struct scm_region *region = region_new();

    assert_int_equal(scm_region_refresh(region, 4096), ERANGE);
    assert_int_equal(scm_refresh(cut(region, 8), 4096), ERANGE);
    assert_int_equal(mem_info().num_dates, 0);
    assert_int_equal(scm_region_refresh(region, 4095), 0);
    assert_int_equal(scm_region_refresh(region, 4095), 0);
    assert_int_equal(mem_info().num_dates, 1);
    ticks(4096);
    expect_ended(region);
    expect_no_memory_kept();
}

static void after_damage(struct scm_region *region)
{
    struct region_page *first = region_at(region)->first;

    first->handle = 77;
    scm_region_refresh(region, 0);
    scm_tick();
}

TEST(misuse_of_its_objects_dies, fresh)
{
    struct scm_region *region = region_new();
    char *objects[] = {cut(region, 100), cut(region, 5000), cut(region, 50000)};

    for (unsigned i = 0; i < 3; i++) {
        expect_death(prudence_free(objects[i]), "prudence_free:", "points into an object of cache");
        expect_death(discard(prudence_realloc(objects[i], 100)),
                     "prudence_realloc:", "points into an object of cache");
        expect_death(scm_set_finalizer(objects[i], witness()), "scm_set_finalizer:", "points into");
    }
    expect_death(after_damage(region), "the head of page", "overwritten", "lower address");
    assert_int_equal(scm_region_unregister(region), 0);
    expect_death(scm_refresh(objects[0], 1), "scm_refresh:", "object of a region that has ended");
    expect_no_memory_kept();
}

/* ------------------------------------------------------------------------------------- deferral */

TEST(its_pages_may_go_the_latent_way, fresh)
{
    struct scm_region *region = region_new();
    char *objects[] = {cut(region, 100), cut(region, 5000), cut(region, 100000)};
    uint64_t before;

    assert_int_equal(prudence_option_set("scm_expired", "deferred"), 0);
    assert_int_equal(scm_region_refresh(region, 0), 0);
    before = limit_used();
    prudence_read_lock();
    ticks(1);
    expect_ended(region);
    assert_in_range(limit_used() - before, 4096 + REGION_BIG + 100000,
                    1 << 20); /* some bytes are reserved ahead */
    for (unsigned i = 0; i < 100; i++) {
        struct scm_region *other = region_new();
        char *object = cut(other, 100), *larger = cut(other, 5000);

        assert_ptr_not_equal(object, objects[0]);
        assert_ptr_not_equal(larger, objects[1]);
        for (unsigned j = 0; j < 3; j++)
            assert_int_equal(objects[j][99], 0x5a);
        assert_int_equal(scm_region_unregister(other), 0);
    }
    prudence_read_unlock();
    assert_int_equal(prudence_option_set("scm_expired", "free"), 0);
    prudence_synchronize();
    expect_no_memory_kept();
}

static unsigned ticks_in_finalizer;

static int tick_in_finalizer(void *object)
{
    (void)object;
    ticks_in_finalizer++;
    scm_tick();
    return 0;
}

static int finalizer_that_ticks(void)
{
    static int number = -1;

    if (number < 0)
        number = scm_register_finalizer(tick_in_finalizer);
    return number;
}

/* A refresh processes an expired object, whose finalizer advances the clock beyond the date that
 * the refresh has just given. */
TEST(a_date_that_ends_inside_the_refresh, fresh)
{
    struct scm_region *region = region_new();
    void *object = scm_malloc(48);

    collection("lazy");
    assert_int_equal(scm_set_finalizer(object, finalizer_that_ticks()), 0);
    assert_int_equal(scm_refresh(object, 0), 0);
    ticks(1);
    assert_int_equal(ticks_in_finalizer, 0); /* for the next call */
    assert_int_equal(scm_region_refresh(region, 0), 0);
    assert_int_equal(ticks_in_finalizer, 1);
    errno = 0;
    assert_null(scm_region_alloc(region, 16));
    assert_true(errno == EPERM || errno == ESTALE);
}

/* One that the refresh extends beyond that tick lives on. */
TEST(a_date_that_does_not_end_inside_the_refresh, fresh)
{
    struct scm_region *region = region_new();
    void *object = scm_malloc(48);

    collection("lazy");
    ticks_in_finalizer = 0;
    assert_int_equal(scm_set_finalizer(object, finalizer_that_ticks()), 0);
    assert_int_equal(scm_refresh(object, 0), 0);
    ticks(1);
    assert_int_equal(scm_region_refresh(region, 1), 0);
    assert_int_equal(ticks_in_finalizer, 1);
    assert_non_null(scm_region_alloc(region, 16));
    ticks(1);
    assert_null(scm_region_alloc(region, 16));
}

SUITE(scm_test_uses(), (void)act_global_refresh)
