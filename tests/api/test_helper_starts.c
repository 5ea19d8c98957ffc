/* SPDX-License-Identifier: MIT */
/*
 * With background=1 the helper exists from the library's load on, from the moment when the option
 * is set, and in a forked child when fork returns. No call that allocates, frees or defers starts a
 * thread, because its caller may hold something that pthread_create wants. But a deferral to a
 * cache with a destructor does, and keeps errno.
 *
 * This program has its own pthread_create, which counts and passes the call on.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with other
 * threads)
 */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <prudence/prudence.h>

#include "base/atomic.h"
#include "support/gp_child.h"
#include "support/suite.h"
#include "support/threads.h"
#include "toolkit/callbacks/callback_worker.h"

#define OBJECTS 4000

static __thread bool in_a_call;
static uint32_t made, made_in_a_call;
static bool refuse;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    __typeof(pthread_create) *real = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    add_relaxed(&made, 1u);
    add_relaxed(&made_in_a_call, in_a_call);
    if (!refuse)
        return real(thread, attributes, run, argument);
    errno = EAGAIN; /* as the C library's function does */
    return EAGAIN;
}

/* Does everything that gives the helper work: latent caches that overflow, pages that decay. */
static void use_everything(void)
{
    struct prudence_cache *cache = prudence_cache_create("large", 4096, NULL);
    static void *objects[OBJECTS];

    in_a_call = true;
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < OBJECTS; i++)
            objects[i] = prudence_cache_alloc(cache);
        prudence_cache_free_deferred_bulk(cache, OBJECTS / 2, objects);
        prudence_cache_free_bulk(cache, OBJECTS / 2, objects + OBJECTS / 2);
        prudence_free(prudence_malloc(1 << 20));
        prudence_free_deferred(prudence_malloc(3 << 20));
    }
    in_a_call = false;
    prudence_cache_destroy(cache);
}

/* Returns 42, or a number that names the failed expectation. */
static int expect_the_helper(unsigned made_before)
{
    if (load_relaxed(&made) != made_before + 1)
        return 1;
    if (threads_now() != 2)
        return 2;
    use_everything();
    if (load_relaxed(&made_in_a_call))
        return 3;
    return load_relaxed(&made) == made_before + 1 ? 42 : 4;
}

static int expect_no_helper(unsigned made_before)
{
    use_everything();
    return load_relaxed(&made) == made_before && threads_now() == 1 ? 42 : 5;
}

static void set(const char *background)
{
    assert_int_equal(prudence_option_set("background", background), 0);
}

TEST(from_the_moment_at_which_it_is_set)
{
    expect_exit(42, (use_everything(), set("1"), set("1"), expect_the_helper(0)), "");
}

static int fork_with_helper(void)
{
    set("1");
    for (unsigned i = 0; i < 10; i++)
        expect_exit(42, expect_the_helper(1), "");
    return expect_the_helper(0);
}

TEST(in_a_forked_child)
{
    expect_exit(42, fork_with_helper(), "");
}

static int fork_after_switching_off(void)
{
    set("1");
    set("0");
    expect_exit(42, expect_no_helper(1), "");
    return 42;
}

TEST(not_in_a_child_that_does_not_want_it)
{
    expect_exit(42, fork_after_switching_off(), "");
}

/* Work continues without the helper; setting the option again retries. */
static int refused(void)
{
    refuse = true;
    prudence_option_set("background", "1");
    if (expect_no_helper(1) != 42)
        return 6;
    refuse = false;
    set("1");
    return expect_the_helper(1);
}

TEST(a_thread_may_be_refused)
{
    expect_exit(42, refused(), "");
}

static void destroy(void *object, void *context)
{
}

static int defer_when_refused(void)
{
    const struct prudence_cache_attr attr = {.size = sizeof attr, .destructor = destroy};
    struct prudence_cache *cache = prudence_cache_create("destroyed", 64, &attr);

    refuse = true;
    errno = 0;
    for (unsigned i = 0; i < 100 && !errno; i++) {
        store_relaxed(&callback_main_worker.retry_at, (uint64_t)0);
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
    }
    return load_relaxed(&made) > 1 && !errno ? 42 : 7;
}

TEST(a_refusal_leaves_errno)
{
    expect_exit(42, defer_when_refused(), "");
}

TEST(from_the_load_on)
{
    assert_child_again("loaded", "background=1");
}

TEST(never_without_the_option)
{
    assert_child_again("plain", NULL);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return strcmp(argv[1], "loaded") == 0 ? expect_the_helper(0) : expect_no_helper(0);
    return suite_run(NULL, NULL);
}
