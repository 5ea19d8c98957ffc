/* SPDX-License-Identifier: MIT */
/*
 * The state that a child of vfork shares with its parent, without a vfork: in the child no sequence
 * ends and all calls are nested, and the parent gets back what it had, on kernels that write the
 * CPU number only when it changes as well.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>

#include <prudence/prudence.h>

#include "heap/nested.h"
#include "posix.h"
#include "rseq_area.h"
#include "support/gp_child.h"
#include "support/slab_test.h"
#include "support/threads.h"
#include "vfork.h"

static void *nothing(void *unused)
{
    return unused;
}

static int begin(void **state)
{
    pthread_t thread;

    (void)state;
    pthread_create(&thread, NULL, nothing, NULL); /* the process counts as threaded from now on */
    pthread_join(thread, NULL);
    prudence_free(prudence_malloc(1));
    return 0;
}

/* The CPU number of the C library's struct rseq, or -1 if it has none. */
static int cpu_number(void)
{
    return posix_rseq_area.known && posix_rseq_area.size
               ? *(volatile int *)(void *)(os_percpu_thread_pointer() + posix_rseq_area.offset + 4)
               : -1;
}

TEST(a_child_is_inside_the_library, begin)
{
    bool has_number = cpu_number() >= 0;
    uint64_t saved = vfork_prepare();
    void *object;

    assert_false(call_is_nested());
    vfork_child(saved);
    assert_true(os_in_vfork_child);
    assert_true(call_is_nested());
    assert_int_equal(cpu_number(), -1);
    object = prudence_malloc(100);
    assert_true(nested_has(object));
    assert_int_equal(vfork_parent(saved, 4711), 4711);
    assert_false(os_in_vfork_child);
    assert_false(call_is_nested());
    assert_int_equal(os_busy, 0);
    assert_int_equal(cpu_number() >= 0, has_number);
    prudence_free(object);
}

TEST(the_number_is_that_of_the_cpu, begin)
{
    cpu_set_t before, one;

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        uint64_t saved;

        if (!CPU_ISSET(cpu, &before) || cpu_number() < 0)
            continue;
        saved = vfork_prepare();
        vfork_child(saved);
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        vfork_parent(saved, 1);
        assert_int_equal(cpu_number(), cpu);
    }
    sched_setaffinity(0, sizeof before, &before);
}

TEST(failures_set_errno, begin)
{
    errno = 0;
    assert_int_equal(vfork_parent(vfork_prepare(), -EAGAIN), -1);
    assert_int_equal(errno, EAGAIN);
}

/* A child's child finds a number that is marked already, and leaves it so. */
TEST(children_within_children, begin)
{
    uint64_t outer = vfork_prepare(), inner;

    vfork_child(outer);
    inner = vfork_prepare();
    vfork_child(inner);
    vfork_parent(inner, 1);
    assert_int_equal(cpu_number(), -1);
    assert_true(os_in_vfork_child);
    assert_true(call_is_nested());
    vfork_parent(outer, 1);
    assert_false(os_in_vfork_child);
}

static int die_with_a_lock(void)
{
    uint64_t saved;

    begin(NULL);
    saved = vfork_prepare();
    vfork_child(saved);
    os_busy_enter();
    vfork_parent(saved, 4711);
    return 0;
}

TEST(one_that_dies_with_a_lock_ends_the_parent_with_a_report)
{
    expect_death(die_with_a_lock(), "child 4711 of vfork ended inside the library");
}

SUITE()
