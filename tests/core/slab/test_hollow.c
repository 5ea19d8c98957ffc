/* SPDX-License-Identifier: MIT */
/*
 * Hollow pages, within slabs in use, go back to the system, and live objects keep their contents.
 * Objects of type-safe and constructed caches stay as they are. While the pages of a slab are
 * purged, no thread gets objects of the slab, also if others are freed, and a child of fork finds
 * all slabs where they belong; and the cache may be destroyed, or get a window. Decay does this to
 * slabs that no thread used for a round, and pauses if that was wrong.
 *
 * ctest: not-with thread (mincore; a fork within a call)
 * ctest: small-pages (large ones all have live objects)
 */
#define _GNU_SOURCE /* mincore */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mapping.h"
#include "slab/reclaim/decay.h"
#include "slab/reclaim/hollow.h"
#include "support/pages.h"
#include "support/window_test.h"

#define COUNT 4096
#define SIZE  512
#define EVERY 64 /* one in this many objects stays */

static void *objects[COUNT], *more[COUNT];
static struct prudence_cache *cache;

static bool stays(unsigned i)
{
    return i % EVERY == 0;
}

static void fill(struct prudence_cache *of)
{
    cache = of;
    allocate_all(cache, objects, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        memset(objects[i], (int)(i / EVERY + 1), SIZE);
    for (unsigned i = 0; i < COUNT; i++)
        if (!stays(i))
            free_all(cache, &objects[i], 1);
    prudence_cache_shrink(cache);
}

static bool is_as_filled(unsigned i, void *object)
{
    const char *byte = object;
    unsigned b = 0;

    while (b < SIZE && byte[b] == (char)(i / EVERY + 1))
        b++;
    return b == SIZE;
}

static void assert_live_ones(void)
{
    for (unsigned i = 0; i < COUNT; i += EVERY)
        assert_true(is_as_filled(i, objects[i]));
}

static void end(void)
{
    for (unsigned i = 0; i < COUNT; i += EVERY)
        if (objects[i])
            free_all(cache, &objects[i], 1);
    check_books(cache);
    destroy_empty(cache);
    mapping_watch(NULL);
}

static bool is_resident(const char *page)
{
    unsigned char is;

    return mincore((void *)(uintptr_t)page, os_page_size, &is) == 0 && is & 1;
}

static uintptr_t page_of(unsigned i, size_t offset)
{
    return ((uintptr_t)objects[i] + offset) & ~(os_page_size - 1);
}

static bool has_live_one(uintptr_t page)
{
    for (unsigned i = 0; i < COUNT; i += EVERY)
        if (page_of(i, 0) == page || page_of(i, SIZE - 1) == page)
            return true;
    return false;
}

/* Returns how many of the freed objects begin in a resident page without live ones. */
static unsigned resident_alone(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < COUNT; i++)
        if (!has_live_one(page_of(i, 0)) && is_resident((const char *)page_of(i, 0)))
            count++;
    return count;
}

TEST(hollow_pages_go)
{
    size_t bytes;

    fill(fixed_cache(SIZE, 64, manual_domain()));
    assert_true(resident_alone() > COUNT / 4);
    bytes = hollow_purge();
    os_pages_trim(); /* slabs that became free */
    assert_in_range(bytes, COUNT * SIZE / 2, COUNT * SIZE);
    assert_int_equal(resident_alone(), 0);
    assert_live_ones();
    check_books(cache);
    allocate_all(cache, more, COUNT / 2); /* they serve again */
    for (unsigned i = 0; i < COUNT / 2; i++)
        memset(more[i], 'm', SIZE);
    assert_live_ones();
    free_all(cache, more, COUNT / 2);
    end();
}

/* Freed objects of the cache are as they were. */
static void keeps_all(void)
{
    hollow_purge();
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(is_as_filled(i, objects[i]));
    end();
}

TEST(type_safe_objects_stay)
{
    struct prudence_cache *of = prudence_cache_create(
        "test", SIZE,
        &(struct prudence_cache_attr){.size = sizeof(struct prudence_cache_attr),
                                      .flags = PRUDENCE_CACHE_TYPESAFE});

    fill(of);
    keeps_all();
}

static void construct(void *object, void *context)
{
    memset(object, 'c', SIZE);
}

TEST(constructed_objects_stay)
{
    struct prudence_cache *of = prudence_cache_create(
        "test", SIZE,
        &(struct prudence_cache_attr){.size = sizeof(struct prudence_cache_attr),
                                      .constructor = construct});

    fill(of);
    keeps_all();
}

TEST(latent_objects_stay)
{
    struct prudence_domain *domain = manual_domain();

    fill(fixed_cache(SIZE, 64, domain));
    for (unsigned i = 0; i < COUNT; i += EVERY)
        if (i % (2 * EVERY))
            defer_all(cache, &objects[i], 1);
    hollow_purge();
    assert_live_ones(); /* readers may still be there */
    check_books(cache);
    for (unsigned i = 0; i < COUNT; i += EVERY)
        if (i % (2 * EVERY))
            objects[i] = NULL;
    for (unsigned i = 0; i < 3; i++) {
        prudence_manual_advance(domain);
        prudence_cache_shrink(cache);
    }
    end();
}

TEST(locked_memory_stays)
{
    fill(fixed_cache(SIZE, 64, manual_domain()));
    if (mlock(objects[COUNT / 2], 64 << 10)) {
        end();
        skip();
    }
    hollow_purge();
    munlock(objects[COUNT / 2], 64 << 10);
    assert_live_ones();
    assert_true(list_is_empty(&node_here(cache)->away));
    end();
}

static unsigned calls, fails_at;

static bool fails_once(void)
{
    return calls++ == fails_at;
}

/* Takes an object of a new slab in a huge mapping, because there is room for no region. */
static void *object_in_huge_mapping(void)
{
    static void *runs[8192];
    size_t bytes = cache->body->slab_bytes;
    struct slab *slab;
    unsigned count = 0;
    void *object;

    os_pages_trim();
    os_memory_fails = fails_once;
    for (fails_at = 1; !count || page_index_find(runs[count - 1]).region; count++) {
        calls = 0;
        assert_true(count < 8192);
        runs[count] = os_pages_alloc(bytes, OS_PAGE_SIZE, 0, NULL);
        assert_non_null(runs[count]);
    }
    calls = 0;
    fails_at = 2;
    slab = slab_grow(cache, 0, OS_ALLOC_DEFAULT);
    os_memory_fails = NULL;
    assert_non_null(slab);
    assert_null(page_index_find(slab->pages).region);
    assert_int_equal(node_add_slab(&cache->body->nodes[slab->node], slab, &object, 1), 1);
    while (count)
        os_pages_free(runs[--count], bytes);
    return object;
}

TEST(a_slab_in_a_huge_mapping_does_not_end_a_trim)
{
    struct prudence_cache *other = fixed_cache(SIZE, 64, manual_domain());
    void *object;

    cache = other;
    object = object_in_huge_mapping();
    fill(fixed_cache(SIZE, 64, manual_domain()));
    hollow_purge();
    os_pages_trim();
    assert_int_equal(resident_alone(), 0);
    end();
    free_all(other, &object, 1);
    destroy_empty(other);
}

/* ---------------------------------------------------------------------- while pages are purged */

static unsigned seen, taken_from_window;

/* Returns whether this is the first purge of a hollow page. */
static bool is_first(const char *call)
{
    return strcmp(call, "madvise") == 0 && !list_is_empty(&node_here(cache)->away) && seen++ == 0;
}

/* Frees the live objects of slabs that are away, and allocates all that there is. */
static void free_and_allocate(const char *call)
{
    struct list *item;

    if (!is_first(call))
        return;
    for (unsigned i = 0; i < COUNT; i += EVERY) {
        if (slab_known(objects[i])->list != SLAB_AWAY)
            continue;
        free_all(cache, &objects[i], 1);
        objects[i] = NULL;
    }
    prudence_cache_shrink(cache); /* the objects come to their slabs */
    assert_false(list_is_empty(&node_here(cache)->away));
    list_for_each(item, &node_here(cache)->away)
    {
        assert_true(list_entry(item, struct slab, link)->free > 0);
    }
    allocate_all(cache, more, COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        memset(more[i], (int)(i / EVERY + 1), SIZE);
}

TEST(nobody_allocates_there)
{
    fill(fixed_cache(SIZE, 64, manual_domain()));
    seen = 0;
    mapping_watch(free_and_allocate);
    hollow_purge();
    mapping_watch(NULL);
    assert_true(seen > 0);
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(is_as_filled(i, more[i]));
    check_books(cache);
    free_all(cache, more, COUNT);
    end();
}

static void count(const char *call)
{
    seen += strcmp(call, "madvise") == 0;
}

/* Full slabs are none of the node's hollow ones, and a slab is read once. */
TEST(each_page_goes_once)
{
    unsigned slabs = 0;
    struct list *item;

    cache = fixed_cache(SIZE, 64, manual_domain());
    allocate_all(cache, more, cache->body->capacity);
    assert_int_equal(hollow_purge(), 0); /* no slab is partial */
    allocate_all(cache, more + cache->body->capacity, COUNT - cache->body->capacity);
    fill(cache);
    list_for_each(item, &node_here(cache)->lists[SLAB_PARTIAL])
    {
        slabs++;
    }
    seen = 0;
    mapping_watch(count);
    hollow_purge();
    mapping_watch(NULL);
    assert_in_range(seen, slabs, COUNT / EVERY + slabs); /* live ones part the pages */
    free_all(cache, more, COUNT);
    end();
}

static int child_status;
static pid_t child;

static void fork_here(const char *call)
{
    if (is_first(call))
        child = fork();
}

/* The thread that purges forks in the call. In the child it goes on. */
TEST(the_thread_forks)
{
    fill(fixed_cache(SIZE, 64, manual_domain()));
    seen = 0;
    mapping_watch(fork_here);
    hollow_purge();
    mapping_watch(NULL);
    assert_true(seen > 0);
    assert_live_ones();
    assert_true(list_is_empty(&node_here(cache)->away));
    end();
    if (child == 0)
        _exit(0);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
}

static void *fork_and_end(void *argument)
{
    child = fork();
    if (child == 0) {
        assert_live_ones();
        assert_true(list_is_empty(&node_here(cache)->away));
        end(); /* also destroys the cache, for which no visitor may remain */
        _exit(0);
    }
    return NULL;
}

static void another_forks(const char *call)
{
    pthread_t thread;

    if (!is_first(call))
        return;
    pthread_create(&thread, NULL, fork_and_end, NULL);
    pthread_join(thread, NULL);
}

TEST(another_thread_forks)
{
    fill(fixed_cache(SIZE, 64, manual_domain()));
    seen = 0;
    mapping_watch(another_forks);
    hollow_purge();
    mapping_watch(NULL);
    assert_true(seen > 0);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_int_equal(child_status, 0);
    assert_live_ones();
    end();
}

/* ---------------------------------------------------------------------------------------- decay */

static void round_of_decay(void)
{
    now += 2 * slab_decay;
    decay_enabled = true;
    while (decay_some(100, 100))
        ;
    decay_enabled = false;
    os_pages_trim(); /* slabs that are free */
}

static void rounds(unsigned count)
{
    while (count--)
        round_of_decay();
}

static void fill_for_decay(void)
{
    posix_clock_injected = our_clock;
    fill(fixed_cache(SIZE, 64, manual_domain()));
    os_pages_trim();
    assert_true(resident_alone() > COUNT / 4);
}

TEST(pages_go_in_the_second_round)
{
    unsigned before;

    fill_for_decay();
    before = resident_alone();
    round_of_decay();
    assert_int_equal(resident_alone(), before);
    round_of_decay();
    assert_int_equal(resident_alone(), 0);
    assert_live_ones();
    check_books(cache);
    rounds(3);
    assert_true(node_here(cache)->still);
    end();
}

/* Between two rounds an object of each slab is freed. */
TEST(pages_of_used_slabs_stay)
{
    unsigned before;

    fill_for_decay();
    round_of_decay();
    for (unsigned i = 0; i < COUNT; i += 2 * EVERY) {
        free_all(cache, &objects[i], 1);
        objects[i] = NULL;
    }
    prudence_cache_shrink(cache);
    before = resident_alone();
    assert_true(before > COUNT / 4);
    round_of_decay();
    assert_int_equal(resident_alone(), before);
    round_of_decay();
    assert_int_equal(resident_alone(), 0);
    for (unsigned i = EVERY; i < COUNT; i += 2 * EVERY)
        assert_true(is_as_filled(i, objects[i]));
    end();
}

static unsigned slabs_of(struct prudence_cache *of)
{
    return node_here(of)->slabs;
}

/* As long as other slabs have free objects. But the cache does not grow while there are some. */
TEST(slabs_without_pages_are_used_last)
{
    unsigned slabs, others;

    fill_for_decay();
    rounds(2);
    slabs = slabs_of(cache);
    others = cache->body->capacity * 4;
    allocate_all(cache, more, others); /* the cache grows by four slabs */
    free_all(cache, more, others);
    assert_int_equal(resident_alone(), 0);
    slabs = slabs_of(cache);
    node_here(cache)->hollow_regret = 0;
    allocate_all(cache, more, others / 2);
    assert_int_equal(node_here(cache)->hollow_regret, 0);
    allocate_all(cache, more + others / 2, COUNT / 2);
    assert_true(node_here(cache)->hollow_regret > 0);
    assert_true(slabs_of(cache) <= slabs);
    free_all(cache, more, others / 2 + COUNT / 2);
    end();
}

/* All are used at once. So decay waits for some rounds. */
TEST(decay_pauses_if_it_was_wrong)
{
    unsigned before;

    fill_for_decay();
    rounds(2);
    assert_int_equal(resident_alone(), 0);
    for (unsigned time = 0; time < 2; time++) {
        allocate_all(cache, more, COUNT - COUNT / EVERY);
        for (unsigned i = 0; i < COUNT - COUNT / EVERY; i++)
            memset(more[i], 'm', SIZE);
        free_all(cache, more, COUNT - COUNT / EVERY);
        prudence_cache_shrink(cache);
        os_pages_trim();
        before = resident_alone();
        assert_true(before > COUNT / 4);
        rounds(3);
        assert_int_equal(resident_alone(), before);
        rounds(20);
        assert_int_equal(resident_alone(), 0);
    }
    assert_live_ones();
    end();
}

TEST(a_round_looks_at_a_part_of_many_slabs)
{
    static void *few[64 * 1024];
    struct prudence_cache *many = fixed_cache(64, 64, manual_domain());
    unsigned count = 0;
    struct list *item;
    struct slab *at;

    posix_clock_injected = our_clock;
    allocate_all(many, few, 64 * 1024);
    for (unsigned i = 0; i < 64 * 1024; i++)
        if (i % 256)
            free_all(many, &few[i], 1);
    prudence_cache_shrink(many);
    assert_true(slabs_of(many) > 200);
    round_of_decay();
    list_for_each(item, &node_here(many)->lists[SLAB_PARTIAL])
    {
        count += list_entry(item, struct slab, link)->idle;
    }
    assert_int_equal(count, 128);
    /* The next slab of the list leaves it. */
    at = list_entry(node_here(many)->hollow_at, struct slab, link);
    for (unsigned i = 0; i < 64 * 1024; i += 256) {
        if (slab_known(few[i]) != at)
            continue;
        free_all(many, &few[i], 1);
        few[i] = NULL;
    }
    prudence_cache_shrink(many);
    assert_ptr_not_equal(node_here(many)->hollow_at, &at->link);
    rounds(4);
    assert_true(list_is_empty(&node_here(many)->lists[SLAB_PARTIAL]));
    check_books(many);
    for (unsigned i = 0; i < 64 * 1024; i += 256)
        if (few[i])
            free_all(many, &few[i], 1);
    destroy_empty(many);
}

/* As a thread that frees while it holds a lock of a layer above. */
TEST(a_thread_that_holds_something_purges_nothing)
{
    unsigned before;

    fill_for_decay();
    before = resident_alone();
    for (unsigned i = 0; i < 3; i++) {
        now += 2 * slab_decay;
        decay_enabled = true;
        os_busy_enter();
        while (decay_some(100, 100))
            ;
        os_busy_leave();
        decay_enabled = false;
    }
    assert_int_equal(resident_alone(), before);
    end();
}

/* The program's function waits for a thread that destroys the cache, first with live objects.
 * Returns NULL if all is right. */
static void *destroy_cache(void *unused)
{
    if (cache->body->visitors || prudence_cache_destroy(cache) != EBUSY)
        return cache;
    for (unsigned i = 0; i < COUNT; i += EVERY)
        free_all(cache, &objects[i], 1);
    return prudence_cache_destroy(cache) ? cache : NULL;
}

static void wait_for_destruction(const char *call)
{
    pthread_t thread;
    void *wrong;

    if (seen || !is_first(call))
        return;
    pthread_create(&thread, NULL, destroy_cache, NULL);
    pthread_join(thread, &wrong);
    assert_null(wrong);
}

TEST(the_cache_is_destroyed)
{
    os_pages_trim();
    for (unsigned decays = 0; decays < 2; decays++) {
        uint64_t used = pages().used;

        fill_for_decay();
        seen = 0;
        mapping_watch(wait_for_destruction);
        if (decays)
            rounds(2);
        else
            hollow_purge();
        mapping_watch(NULL);
        assert_true(seen > 0);
        assert_int_equal(pages().used, used);
    }
}

static bool is_in_window(const void *pages)
{
    return cache->body->window && os_window_has(cache->body->window, pages);
}

/* Frees the new objects. In the window those that stay() leave their slabs hollow. */
static void free_most_of_more(void)
{
    for (unsigned i = 0; i < COUNT; i++) {
        if (is_in_window(more[i]) && stays(i))
            continue;
        free_all(cache, &more[i], 1);
        more[i] = NULL;
    }
    prudence_cache_shrink(cache);
}

/* Inlined code begins to use the cache, so new slabs are in a window. Counts slabs of the window
 * whose pages are then purged: the destruction of the cache, which may come at any time, unmaps
 * the window. */
static void make_window(const char *call)
{
    struct list *item;

    if (is_first(call)) {
        want_window(cache);
        allocate_all(cache, more, COUNT);
        free_most_of_more();
    }
    list_for_each(item, &node_here(cache)->away)
    {
        taken_from_window += is_in_window(list_entry(item, struct slab, link)->pages);
    }
}

TEST(a_cache_gets_a_window)
{
    unsigned left = 0;

    if (!windows_exist())
        skip();
    fill(fixed_cache(SIZE, 64, manual_domain()));
    seen = 0;
    mapping_watch(make_window);
    hollow_purge();
    mapping_watch(NULL);
    assert_true(seen > 1);
    for (unsigned i = 0; i < COUNT; i++) {
        left += more[i] != NULL;
        if (more[i])
            free_all(cache, &more[i], 1);
    }
    if (cache->body->window)
        assert_true(left > 0); /* slabs of the window had hollow pages */
    assert_int_equal(taken_from_window, 0);
    assert_live_ones();
    end();
}

TEST(no_decay_leaves_hollow_pages)
{
    uint64_t decay = slab_decay;
    unsigned before;

    fill_for_decay();
    before = resident_alone();
    slab_decay = 0;
    rounds(3);
    slab_decay = decay;
    assert_int_equal(resident_alone(), before);
    end();
}

SUITE(pin_thread())
