/* SPDX-License-Identifier: MIT */
/*
 * fork in a multi-threaded process: parent and child both continue, inside and outside sections.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit beside threads)
 * ctest: inlined-too
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"
#include "support/threads.h"
#include "support/stats.h"

static struct prudence_cache *cache;

static void use_everything(void)
{
    for (unsigned i = 0; i < 2000; i++) {
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_free(prudence_malloc(i));
        prudence_free_deferred(prudence_malloc(i * 40));
    }
    prudence_synchronize();
    prudence_trim();
}

static uint64_t readers_now(void)
{
    return stats_now().readers;
}

static int child_uses_everything(void *unused)
{
    struct prudence_cache *mine = prudence_cache_create("child's", 300, NULL);

    if (readers_now() > 1)
        return 1;
    use_everything();
    for (unsigned i = 0; i < 1000; i++)
        prudence_cache_free_deferred(mine, prudence_cache_alloc(mine));
    return prudence_cache_destroy(mine) ? 2 : 42;
}

TEST(the_child_forgets_the_readers_of_other_threads)
{
    struct prudence_domain *domain = prudence_domain_create("other", PRUDENCE_DOMAIN_MEMB, NULL);
    struct held_reader here = {.domain = NULL}, there = {.domain = domain};

    held_reader_start(&here);
    held_reader_start(&there);
    assert_child(child_uses_everything, NULL);
    held_reader_end(&here);
    held_reader_end(&there);
    use_everything();
    assert_int_equal(prudence_domain_synchronize(domain), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int child_of_a_section(void *argument)
{
    uint64_t *object = argument;
    prudence_gp_t cookie;

    if (!prudence_read_lock_held())
        return 1;
    prudence_cache_free_deferred(cache, object); /* unlinked, and this section itself has seen it */
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t *other = prudence_cache_alloc(cache);

        if (other == object)
            return 2;
        *other = 0;
        prudence_cache_free_deferred(cache, other);
    }
    cookie = prudence_gp_start_poll();
    if (prudence_gp_poll_state(cookie) || *object != 4711)
        return 3;
    prudence_read_unlock();
    prudence_synchronize();
    return prudence_gp_poll_state(cookie) && !prudence_read_lock_held() ? 42 : 4;
}

TEST(a_section_lives_on_in_parent_and_child)
{
    uint64_t *object = prudence_cache_alloc(cache);
    prudence_gp_t cookie;

    *object = 4711;
    prudence_read_lock();
    assert_child(child_of_a_section, object);
    cookie = prudence_gp_start_poll();
    assert_false(prudence_gp_poll_state(cookie));
    prudence_read_unlock();
    assert_true(prudence_gp_poll_state(cookie));
    prudence_cache_free(cache, object);
}

static int child_online(void *domain)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);

    if (prudence_domain_poll_state(domain, cookie))
        return 1;
    prudence_qsbr_quiescent(domain);
    if (!prudence_domain_poll_state(domain, cookie))
        return 2;
    prudence_qsbr_offline(domain);
    return prudence_domain_synchronize(domain) ? 3 : 42;
}

TEST(an_online_thread_is_online_in_the_child)
{
    struct prudence_domain *domain = prudence_domain_create("qsbr", PRUDENCE_DOMAIN_QSBR, NULL);

    prudence_qsbr_online(domain);
    assert_child(child_online, domain);
    prudence_qsbr_offline(domain);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static bool stop;

static void *keep_busy(void *number)
{
    unsigned long i = (unsigned long)number;

    for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        prudence_read_lock();
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        prudence_read_unlock();
        prudence_free_deferred(prudence_malloc(i % 5000));
        if (i % 500 == 0) {
            struct prudence_cache *short_lived = prudence_cache_create("short-lived", 100, NULL);

            prudence_cache_free_deferred(short_lived, prudence_cache_alloc(short_lived));
            while (prudence_cache_destroy(short_lived) == EBUSY)
                ; /* another test checks the effect */
        }
    }
    return NULL;
}

static int child_of_a_busy_process(void *unused)
{
    use_everything();
    return 42;
}

TEST(many_forks_of_a_busy_process)
{
    pthread_t threads[3];

    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, keep_busy, (void *)(i * 100));
    for (unsigned i = 0; i < 120; i++) {
        if (i % 3 == 0)
            prudence_read_lock();
        if (i % 3 == 0) {
            pid_t child = fork();
            int status;

            if (child == 0) {
                alarm(CHILD_PATIENCE);
                prudence_read_unlock();
                use_everything();
                _exit(42);
            }
            prudence_read_unlock();
            waitpid(child, &status, 0);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
        } else {
            assert_child(child_of_a_busy_process, NULL);
        }
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    threads_join(threads, 3);
    use_everything();
}

static unsigned threads_now(void)
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned threads = 0;

    while (readdir(tasks))
        threads++;
    closedir(tasks);
    return threads - 2; /* . and .. */
}

/* fork does not copy the helper; a child starts one. */
static int child_with_background(void *unused)
{
    struct prudence_cache *large = prudence_cache_create("large", 4096, NULL);
    static void *objects[4000];

    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 4000; i++)
            objects[i] = prudence_cache_alloc(large);
        prudence_cache_free_deferred_bulk(large, 4000, objects);
    }
    for (unsigned i = 0; i < 100 && threads_now() < 2; i++)
        pause_ms(10);
#if !defined(__SANITIZE_THREAD__) /* ThreadSanitizer has a thread of its own */
    if (threads_now() != 2)
        return 2; /* the child lacks a helper */
#endif
    return prudence_cache_destroy(large) ? 1 : 42;
}

TEST(the_idle_helper_starts_anew_in_the_child)
{
    prudence_option_set("background", "1");
    assert_int_equal(child_with_background(NULL), 42); /* then it runs in this process */
    for (unsigned i = 0; i < 10; i++)
        assert_child(child_with_background, NULL);
    prudence_option_set("background", "0");
}

static int set_up(void **state)
{
    cache = prudence_cache_create("forked", 128, NULL);
    return cache == NULL;
}

SUITE_BETWEEN(set_up, NULL)
