/* SPDX-License-Identifier: MIT */
/*
 * The cost of a failing allocation. A size for which there never is memory (more than a process can
 * address, or more than the option limit) is refused without a system call, a lock, a grace period
 * or a drain of caches. A size that the system refuses is requested twice, and not more often if
 * nothing could be given back in between.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/all_caches.h"
#include "support/slab_test.h"

#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/scm.h>

#include "support/gp_child.h"

#include "heap/heap.h"
#include "os_page_map.h"
#include "pages/page_source.h"

/* The first is the whole address space of a process, without room for the block's alignment. */
static const size_t hopeless[] = {(size_t)1 << PAGE_MAP_ADDRESS_BITS,
                                  (size_t)1 << 48,
                                  (size_t)1 << 62,
                                  PTRDIFF_MAX,
                                  (size_t)PTRDIFF_MAX + 1,
                                  SIZE_MAX / 9 * 8 + 8,
                                  SIZE_MAX};

static bool all_fail(void *small, void *large, size_t size)
{
    return !prudence_malloc(size) && !prudence_calloc(1, size) && !prudence_calloc(size, 2) &&
           !prudence_aligned_alloc(64, size) && !prudence_aligned_alloc(8192, size) &&
           !prudence_realloc(small, size) && !prudence_realloc(large, size) && !scm_malloc(size);
}

/* Under the sanitizers, a lock or a report may make system calls, and mmap() is theirs. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define WITHOUT_SANITIZER 1
#endif

#ifdef WITHOUT_SANITIZER
/* From here on, every system call except read, write and exit kills. A lock taken again either
 * makes a system call or is reported. */
static int fails_quietly(void *unused)
{
    void *small = prudence_malloc(100), *large = prudence_malloc(100000);
    bool failed = true;

    os_lock_take(&heap_lock);
    os_lock_take(&slab_caches_lock);
    os_lock_take(&pages_lock);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
        return 77;
    for (unsigned i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++)
        failed = failed && all_fail(small, large, hopeless[i]);
    syscall(SYS_exit, failed ? 42 : 1); /* exit_group() would kill, too */
    return 1;
}

TEST(a_hopeless_size_asks_for_nothing)
{
    assert_child(fails_quietly, NULL);
}
#endif

TEST(nothing_is_lost_by_it)
{
    struct prudence_cache *cache = fixed_cache(64, 16, manual_domain());
    struct prudence_stats before, after;
    void *object = prudence_cache_alloc(cache), *small = prudence_malloc(100);
    void *large = prudence_malloc(100000);
    uint64_t cached;

    prudence_cache_free_deferred(cache, object); /* latent; a grace period would free it */
    cached = stats_of(cache).objects_cached;
    assert_true(cached > 0);
    prudence_stats(&before);
    for (unsigned i = 0; i < sizeof hopeless / sizeof hopeless[0]; i++)
        assert_true(all_fail(small, large, hopeless[i]));
    prudence_stats(&after);
    assert_int_equal(after.pressure_waits, before.pressure_waits);
    assert_int_equal(after.throttle_waits, before.throttle_waits);
    assert_int_equal(after.grace_periods, before.grace_periods);
    assert_int_equal(stats_of(cache).objects_cached, cached);
    assert_int_equal(stats_of(cache).objects_latent, 1);
    prudence_free(small);
    prudence_free(large);
    destroy_empty(cache);
}

TEST(above_the_limit)
{
    void *small = prudence_malloc(100), *large = prudence_malloc(100000);
    struct prudence_stats before, after;

    assert_int_equal(prudence_option_set("limit", "16M"), 0);
    prudence_free_deferred(prudence_malloc(100000));
    prudence_stats(&before);
    memory_fail(0, 0); /* counts */
    assert_true(all_fail(small, large, ((size_t)16 << 20) + 1));
    assert_int_equal(memory_calls, 0);
    memory_succeed();
    prudence_stats(&after);
    assert_int_equal(after.grace_periods, before.grace_periods);
    prudence_free(prudence_malloc((size_t)15 << 20)); /* a smaller size still works */
    assert_int_equal(prudence_option_set("limit", "0"), 0);
    prudence_free(small);
    prudence_free(large);
    prudence_synchronize();
    prudence_trim();
}

#ifdef WITHOUT_SANITIZER
static size_t refused_from = SIZE_MAX;
static unsigned refusals;

/* Replaces libc's mmap() by a system without that much memory. */
void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (bytes >= refused_from) {
        refusals++;
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

TEST(what_the_system_refuses_is_asked_for_twice)
{
    prudence_synchronize();
    prudence_trim(); /* leaves nothing to give back */
    refused_from = (size_t)1 << 30;
    errno = 0;
    assert_null(prudence_malloc((size_t)1 << 30));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(refusals, 2);
    prudence_free(prudence_malloc((size_t)40 << 20)); /* leaves something to give back */
    assert_null(prudence_malloc((size_t)1 << 30));
    assert_in_range(refusals, 4, 8);
    refused_from = SIZE_MAX;
}
#endif

SUITE(pin_thread())
