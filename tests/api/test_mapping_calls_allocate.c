/* SPDX-License-Identifier: MIT */
/*
 * Functions that change mappings may belong to the program, and allocate. In each such call, a hook
 * allocates, resizes, frees and defers objects of all kinds. The library holds nothing then, so the
 * hook returns, other threads go on, a fork finds everything consistent, and nothing is lost.
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <unistd.h>

#include <prudence/call.h>
#include <prudence/heap_walk.h>

#include "mapping.h"
#include "support/pages.h"
#include "support/threads.h"

#define SMALL 2000
#define LARGE ((size_t)200 << 10)
#define GROWN ((size_t)5 << 20)  /* moved by page tables */
#define HUGE  ((size_t)80 << 20) /* its own mapping */

/* ------------------------------------------------------------------------------------ the hook */

static const char *const calls[] = {"mmap", "munmap", "madvise", "mprotect", "mremap"};
#define CALLS (sizeof calls / sizeof *calls)

static uint64_t seen[CALLS]; /* atomic */
static __thread bool inside;
static __thread void *kept; /* a large block, from one call to the next */

static unsigned number_of(const char *call)
{
    unsigned i = 0;

    while (strcmp(calls[i], call) != 0)
        i++;
    return i;
}

/* Writes enough to detect another owner. */
static void fill(void *object, size_t size)
{
    fill_pattern(object, min_size(size, 64));
}

static bool is_filled(const void *object, size_t size)
{
    return has_pattern(object, min_size(size, 64));
}

/* Uses memory inside a call. Memory may fail on demand. */
static void use_memory(void)
{
    void *small[20], *large = prudence_malloc(LARGE), *aligned = prudence_aligned_alloc(4096, 9000);

    prudence_free(kept);
    kept = prudence_malloc(LARGE / 2);
    for (unsigned i = 0; i < 20; i++) {
        small[i] = prudence_malloc(i * 1000 + 10);
        if (small[i])
            fill(small[i], i * 1000 + 10);
    }
    if (large)
        large = prudence_realloc(large, 2 * LARGE);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(!small[i] || is_filled(small[i], i * 1000 + 10));
        if (i % 2)
            prudence_free(small[i]);
        else if (small[i])
            prudence_free_deferred(small[i]);
    }
    prudence_free(large);
    prudence_free(aligned);
}

static void allocate(const char *call)
{
    assert_false(inside); /* a call inside it goes to the system directly */
    assert_true(os_holds_nothing());
    inside = true;
    add_relaxed(&seen[number_of(call)], 1);
    use_memory();
    inside = false;
}

/* --------------------------------------------------------------------------- all kinds of calls */

static void small_objects(void)
{
    static void *objects[SMALL];

    for (unsigned i = 0; i < SMALL; i++) {
        objects[i] = prudence_malloc(i * 16 + 1);
        if (objects[i])
            fill(objects[i], i * 16 + 1);
    }
    for (unsigned i = 0; i < SMALL; i++) {
        assert_true(!objects[i] || is_filled(objects[i], i * 16 + 1));
        prudence_free(objects[i]);
    }
}

static void deferred_objects(void)
{
    for (unsigned i = 0; i < SMALL; i++) {
        void *object = prudence_malloc(i % 8 ? 3000 : 60000);

        if (object)
            prudence_free_deferred(object);
    }
    prudence_synchronize();
    prudence_barrier();
}

static void grow(size_t from, size_t to)
{
    void *block = prudence_malloc(from), *grown;

    if (!block)
        return;
    fill(block, from);
    grown = prudence_realloc(block, to);
    assert_true(is_filled(grown ? grown : block, from));
    prudence_free(grown ? grown : block);
}

static void all_kinds(void)
{
    small_objects();
    for (unsigned i = 0; i < 12; i++) /* the first have guard pages */
        prudence_free(prudence_malloc(LARGE));
    grow(LARGE, 2 * LARGE);
    grow(GROWN / 2, GROWN);
    grow(GROWN, 4 * GROWN);
    grow(HUGE, HUGE + HUGE / 2);
    prudence_free(prudence_aligned_alloc((size_t)1 << 20, LARGE));
    deferred_objects();
    prudence_trim();
}

static void settle(void)
{
    mapping_watch(NULL);
    prudence_free(kept);
    kept = NULL;
    prudence_synchronize();
    prudence_barrier();
    prudence_trim();
}

TEST(every_call_may_allocate)
{
    memset(seen, 0, sizeof seen);
    mapping_watch(allocate);
    for (unsigned round = 0; round < 3; round++)
        all_kinds();
    settle();
    for (unsigned i = 0; i < 3; i++) /* some tools never call mprotect() and mremap() */
        assert_true(seen[i] > 0);
}

#define FREED ((size_t)8 << 20)

static void free_much(const char *call)
{
    void *block = call[1] == 'm' ? prudence_malloc(FREED) : NULL;

    if (!block)
        return;
    memset(block, 1, FREED);
    prudence_free(block);
    prudence_trim();
    assert_true(os_pages_kept() >= FREED);
}

/* A clock so late that refused purges are tried again. */
static uint64_t later_clock(void)
{
    return os_clock_ns() + UINT64_C(10000000000);
}

/* The program sees all memory that leaves, so memory freed inside its function leaves later. */
TEST(nothing_is_purged_in_a_call)
{
    void *block;

    settle();
    posix_clock_injected = later_clock;
    mapping_watch(free_much);
    block = prudence_malloc(HUGE);
    mapping_watch(NULL);
    os_later_check();
    assert_int_equal(os_pages_kept(), 0);
    prudence_free(block);
    prudence_trim();
    posix_clock_injected = NULL;
}

/* The program never sees an address of metadata, and locks are held. */
TEST(metadata_needs_no_call)
{
    void *blocks[100];

    memset(seen, 0, sizeof seen);
    mapping_watch(allocate);
    for (unsigned i = 0; i < 100; i++) {
        blocks[i] = os_meta_alloc(i % 10 ? OS_META_LOCK_FREE : 100000);
        assert_non_null(blocks[i]);
    }
    for (unsigned i = 0; i < 100; i++)
        os_meta_free(blocks[i], i % 10 ? OS_META_LOCK_FREE : 100000);
    mapping_watch(NULL);
    for (unsigned i = 0; i < CALLS; i++)
        assert_int_equal(seen[i], 0);
}

/* Makes the first calls to the page source and metadata fail in turn, in the hook or outside. */
TEST(failures_in_it_lose_nothing)
{
    uint64_t used;

    mapping_watch(allocate);
    all_kinds();
    settle();
    used = pages().used;
    for (unsigned first = 0; first < 300; first += 29) {
        mapping_watch(allocate);
        memory_fail(first, 1 + first % 5);
        grow(GROWN / 2, GROWN);
        prudence_free(prudence_malloc(LARGE));
        small_objects();
        prudence_trim();
        memory_succeed();
        settle();
        assert_true(pages().used <= used + MIB); /* slabs that caches keep */
    }
}

/* ------------------------------------------------------------------ while a thread is in a call */

static struct {
    sem_t entered, leave;
    const char *call; /* the call to wait in */
    void (*act)(void);
    bool stands; /* the thread is in the call */
    pthread_t thread;
} held;
static __thread bool waits_in_call;

static void wait_in_call(const char *call)
{
    if (!waits_in_call || strcmp(call, held.call) != 0)
        return;
    waits_in_call = false;
    held.stands = true;
    sem_post(&held.entered);
    while (sem_wait(&held.leave))
        ;
    use_memory();
    prudence_free(kept);
    kept = NULL;
}

static void *acts(void *unused)
{
    waits_in_call = true;
    held.act();
    if (waits_in_call) /* no such call was made */
        sem_post(&held.entered);
    waits_in_call = false;
    return unused;
}

/* Until release(), another thread is inside the call, or has made none. */
static void hold_in(const char *call, void (*act)(void))
{
    held.call = call;
    held.act = act;
    held.stands = false;
    sem_init(&held.entered, 0, 0);
    sem_init(&held.leave, 0, 0);
    mapping_watch(wait_in_call);
    assert_int_equal(pthread_create(&held.thread, NULL, acts, NULL), 0);
    while (sem_wait(&held.entered))
        ;
}

static void release(void)
{
    sem_post(&held.leave);
    pthread_join(held.thread, NULL);
}

static void take_and_trim(void)
{
    void *blocks[40];

    for (unsigned i = 0; i < 40; i++)
        blocks[i] = prudence_malloc(LARGE);
    for (unsigned i = 0; i < 40; i++) {
        if (blocks[i])
            memset(blocks[i], 1, LARGE);
        prudence_free(blocks[i]);
    }
    prudence_trim();
}

static void grow_and_free(void)
{
    grow(GROWN / 2, GROWN);
}

static void free_huge(void)
{
    prudence_free(prudence_malloc(HUGE));
    prudence_trim();
}

static void free_large(void)
{
    prudence_free(prudence_malloc(LARGE));
}

static const struct {
    const char *call;
    void (*act)(void);
} stands[] = {
    {"madvise", take_and_trim}, {"munmap", take_and_trim}, {"mmap", free_huge},
    {"munmap", free_huge},      {"mremap", grow_and_free}, {"mprotect", free_large},
    {"madvise", free_large},    {"mmap", take_and_trim},
};
#define STANDS (sizeof stands / sizeof *stands)

static int visit(const struct prudence_heap_slab *slab, const struct prudence_heap_object *object,
                 void *context)
{
    uint64_t *live = context;

    *live += slab->live;
    return 0;
}

TEST(other_threads_go_on)
{
    for (unsigned i = 0; i < STANDS; i++) {
        struct prudence_cache *cache = prudence_cache_create("with", 100, NULL);
        void *object = prudence_malloc(100);
        uint64_t live = 0;

        assert_non_null(cache);
        hold_in(stands[i].call, stands[i].act);
        take_and_trim();
        small_objects();
        grow_and_free();
        deferred_objects();
        prudence_cache_free(cache, prudence_cache_alloc(cache));
        assert_int_equal(prudence_cache_destroy(cache), 0);
        assert_int_equal(prudence_heap_walk(NULL, visit, &live), 0);
        assert_true(live > 0);
        prudence_free(object);
        release();
        settle();
    }
}

/* ThreadSanitizer makes no threads in children, and may hang there. */
#if defined(__SANITIZE_THREAD__)
#define FORKS false
#else
#define FORKS true
#endif

/* Runs in the child: all of the heap is usable, and the books balance. */
static int child(uint64_t used)
{
    bool right;

    mapping_watch(NULL);
    for (unsigned i = 0; i < 3; i++) {
        take_and_trim();
        small_objects();
        grow_and_free();
        free_huge();
    }
    deferred_objects();
    prudence_trim();
    right = pages().used <= used + 2 * HUGE && pages().retained <= 64 * MIB;
    return right ? 0 : 1;
}

TEST(a_fork_finds_everything_whole)
{
    if (!FORKS)
        skip();
    for (unsigned i = 0; i < STANDS; i++) {
        uint64_t used = pages().used;
        pid_t process;

        hold_in(stands[i].call, stands[i].act);
        process = fork();
        if (!process)
            _exit(child(used));
        assert_int_equal(status_of(process), 0);
        release();
        settle();
    }
}

/* Pages that a thread was giving back during the fork are dirty in the child, and leave there. */
TEST(what_was_leaving_is_the_childs)
{
    if (!FORKS)
        skip();
    for (unsigned twice = 0; twice < 2; twice++) {
        void *pinned = prudence_malloc(LARGE); /* keeps the region */
        uint64_t used = pages().used;
        pid_t process;

        assert_non_null(pinned);
        hold_in("madvise", take_and_trim);
        assert_true(held.stands);
        process = fork();
        if (!process) {
            mapping_watch(NULL);
            prudence_trim();
            _exit(pages().retained == 0 && pages().used <= used + 16 * MIB ? 0 : 1);
        }
        assert_int_equal(status_of(process), 0);
        release();
        prudence_free(pinned);
        settle();
    }
}

/* -------------------------------------------------------------------------- races for the last
 * run */

static pthread_barrier_t both;
static __thread bool races;
static uint64_t regions; /* mapped during the race; atomic */

static void meet(const char *call)
{
    if (!races || strcmp(call, "mmap") != 0)
        return;
    if (add_relaxed(&regions, 1) < 2)
        pthread_barrier_wait(&both);
}

static void *take_last(void *run)
{
    races = true;
    *(void **)run = os_pages_alloc(MIB, os_page_size, 0, NULL);
    races = false;
    return NULL;
}

/* Two threads find no run at the same time. Each maps at most one region, and both are served. */
TEST(two_threads_map_two_regions_at_most)
{
    void *filled[64 * 64], *runs[2];
    pthread_t threads[2];
    unsigned count = 0;
    uint64_t used;

    settle();
    region_small = 0;
    used = pages().used;
    filled[count++] = os_pages_alloc(MIB, os_page_size, 0, NULL);
    for (;; count++) { /* until the next run would be in another region */
        const struct region *region = page_index_find(filled[count - 1]).region;

        assert_non_null(region);
        if (region->free_pages < MIB / OS_PAGE_SIZE || count == 64 * 64)
            break;
        filled[count] = os_pages_alloc(MIB, os_page_size, 0, NULL);
    }
    pthread_barrier_init(&both, NULL, 2);
    store_relaxed(&regions, (uint64_t)0);
    mapping_watch(meet);
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, take_last, &runs[i]);
    threads_join(threads, 2);
    mapping_watch(NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_non_null(runs[i]);
        assert_non_null(page_index_find(runs[i]).region);
        os_pages_free(runs[i], MIB);
    }
    assert_ptr_not_equal(runs[0], runs[1]);
    /* The first wishes for an address may be refused, and then each thread asks again. */
    assert_true(load_relaxed(&regions) >= 2);
    for (unsigned i = 0; i < count; i++)
        os_pages_free(filled[i], MIB);
    prudence_trim();
    assert_true(pages().used <= used);
}

/* ----------------------------------------------------------------- a window ends during a purge */

static struct os_window *window;

static void use_window(void)
{
    void *places[8];

    for (unsigned i = 0; i < 8; i++) {
        places[i] = os_window_take(window, NULL);
        if (places[i])
            memset(places[i], 1, 65536);
    }
    for (unsigned i = 0; i < 8; i++)
        if (places[i])
            os_pages_free(places[i], 65536);
    os_pages_trim();
}

TEST(a_window_ends_while_its_pages_leave)
{
    static struct os_window_words words = {.base = OS_WINDOW_NOWHERE};
    uint64_t used, kept_before;

    settle();
    used = pages().used;
    kept_before = pages().retained;
    window = os_window_make(65536, &words);
    if (!window)
        skip();
    hold_in("madvise", use_window);
    os_window_unmake(window);
    release();
    settle();
    assert_int_equal(pages().used, used);
    assert_true(pages().retained <= kept_before);
}

SUITE()
