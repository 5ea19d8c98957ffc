/* SPDX-License-Identifier: MIT */
/*
 * With check=1, a misuse report shows who called, who allocated the object, and who freed or
 * deferred it, even if its grace period is over or another thread was first. The test distinguishes
 * the frames by the functions that contain them.
 */
#include <pthread.h>

#include "guard/stack_depot.h"
#include "support/slab_test.h"

#define CODE_MAX 256 /* bytes; more than any of the functions below has */
#define NOINLINE __attribute__((noinline, noclone, noipa))

static struct prudence_cache *cache;
static void *object;

static NOINLINE void allocates(void)
{
    object = prudence_cache_alloc(cache);
    __asm__ volatile("" ::: "memory");
}

static NOINLINE void frees(void)
{
    prudence_cache_free(cache, object);
    __asm__ volatile("" ::: "memory");
}

static NOINLINE void defers(void)
{
    prudence_cache_free_deferred(cache, object);
    __asm__ volatile("" ::: "memory");
}

static NOINLINE void frees_again(void)
{
    prudence_free(object);
    __asm__ volatile("" ::: "memory");
}

/* Returns whether the function contains an address listed under `title`. */
static bool is_under(const char *title, void (*function)(void))
{
    const char *line = strstr(last_child.output, title);

    while (line && (line = strchr(line, '\n')) && strncmp(line + 1, "prudence:     #", 15) == 0) {
        uintptr_t address = strtoul(strchr(line + 15, ' '), NULL, 16);

        if (address - (uintptr_t)function < CODE_MAX)
            return true;
        line++;
    }
    return false;
}

static void expect_under(const char *title, void (*function)(void))
{
    if (!is_under(title, function))
        fail_msg("expected %p under '%s', got: %s", (void *)(uintptr_t)function, title,
                 last_child.output);
}

static void a_grace_period(void)
{
    for (int i = 0; i < 2; i++) {
        prudence_cache_shrink(cache);
        prudence_manual_advance(cache->domain);
    }
    prudence_cache_shrink(cache);
}

static void act(const char *how)
{
    for (; *how; how++) {
        if (*how == 'a')
            allocates();
        else if (*how == 'f')
            frees();
        else if (*how == 'd')
            defers();
        else if (*how == 'g')
            a_grace_period();
    }
    frees_again();
}

TEST(of_a_double_free)
{
    /* module and offset, for addr2line */
    expect_death(act("af"), "prudence_free: ", "guard_test_check_traces+0x");
    expect_under("called by:", frees_again);
    expect_under("allocated by:", allocates);
    expect_under("freed by:", frees);
}

TEST(of_a_deferred_object)
{
    expect_death(act("ad"), "is already deferred and not yet safe");
    expect_under("allocated by:", allocates);
    expect_under("deferred by:", defers);
}

TEST(of_an_object_deferred_long_ago)
{
    void *neighbour = prudence_cache_alloc(cache); /* keeps the slab */

    expect_death(act("adg"), "is already free");
    expect_under("deferred, and safe now, by:", defers);
    prudence_cache_free(cache, neighbour);
}

static void *thread_frees(void *ignored)
{
    frees();
    return ignored;
}

static void other_thread_first(void)
{
    pthread_t thread;

    allocates();
    pthread_create(&thread, NULL, thread_frees, NULL);
    pthread_join(thread, NULL);
    frees_again();
}

TEST(of_another_thread)
{
    expect_death(other_thread_first(), "");
    expect_under("called by:", frees_again);
    expect_under("freed by:", frees);
}

static void in_bulk(void)
{
    void *objects[2];

    prudence_cache_alloc_bulk(cache, 2, objects);
    objects[1] = objects[0];
    prudence_cache_free_deferred_bulk(cache, 2, objects);
}

TEST(of_large_blocks_and_bulk)
{
    expect_death(in_bulk(), "deferred by:");
}

TEST(same_place_one_trace)
{
    uint32_t number = 0;

    for (int i = 0; i < 1000; i++) {
        uint32_t here = stack_depot_here();

        assert_int_not_equal(here, 0);
        assert_true(i == 0 || here == number);
        number = here;
    }
    assert_int_not_equal(stack_depot_here(), number); /* another line */
}

static void cannot_be_had(void)
{
    memory_fail(0, UINT32_MAX);
    if (stack_depot_here())
        abort();
    memory_succeed();
    if (!stack_depot_here())
        abort();
    stack_depot_frames = 0;
    if (stack_depot_here())
        abort();
    act("af");
}

/* Without memory for the stack depot, or with trace=0, the report shows unknown traces. Runs in a
 * child, whose depot is new. First, because a child inherits the depot. */
TEST_FIRST(unknown_ones)
{
    expect_death(cannot_be_had(), "is already free", "allocated by:\nprudence:     (unknown)",
                 "freed by:\nprudence:     (unknown)");
}

static NOINLINE unsigned deep(unsigned depth, uint64_t way)
{
    unsigned known;

    if (depth == 0)
        return stack_depot_here() != 0;
    /* Two calling places make 2^depth different traces. */
    if (way & 1) {
        known = deep(depth - 1, way >> 1);
        __asm__ volatile("nop" ::: "memory");
    } else {
        known = deep(depth - 1, way >> 1);
        __asm__ volatile("" ::: "memory");
    }
    return known;
}

static void fill_it(void)
{
    uint64_t way = 0;

    stack_depot_frames = OS_TRACE_MAX;
    while (deep(20, way))
        if (++way == 200000)
            abort(); /* 16 MiB must be full by then */
    allocates();     /* has no trace */
    frees();
}

static int check_on(void **state)
{
    /* The frames of the library, which is in this program, come first: many if not optimized. */
    assert_int_equal(prudence_option_set("trace", "14"), 0);
    assert_int_equal(prudence_option_set("check", "1"), 0);
    cache = fixed_cache(100, 16, manual_domain());
    return 0;
}

TEST(a_full_stack_depot)
{
    expect_survival(fill_it(), "");
}

SUITE_BETWEEN(check_on, NULL, pin_thread())
