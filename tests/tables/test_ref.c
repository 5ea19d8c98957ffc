/* SPDX-License-Identifier: MIT */
/* Reference counts: only the last put returns true; a count of zero is not taken again; faults
 * saturate the count and are reported. */
#include "support/slab_test.h"
#include "support/threads.h"

#include <prudence/ref.h>

#define THREADS 4
#define ROUNDS  20000

TEST(the_last_put_says_so)
{
    struct prudence_ref ref;

    prudence_ref_init(&ref, 1);
    prudence_ref_get(&ref);
    assert_true(prudence_ref_get_unless_zero(&ref));
    assert_int_equal(prudence_ref_count(&ref), 3);
    assert_false(prudence_ref_put(&ref));
    assert_false(prudence_ref_put(&ref));
    assert_true(prudence_ref_put(&ref));
    assert_false(prudence_ref_get_unless_zero(&ref));
    assert_int_equal(prudence_ref_count(&ref), 0);
}

/* Each fault runs in a child whose standard error is checked. It must leave a count that no put
 * brings to 0. */
static struct {
    uint32_t count;
    char fault;
} faulty;

static void make_fault(void *unused)
{
    struct prudence_ref ref;
    bool last = false;

    prudence_ref_init(&ref, faulty.count);
    for (unsigned i = 0; i < 3; i++) {
        if (faulty.fault == 'g')
            prudence_ref_get(&ref);
        else if (faulty.fault == 'u')
            last = !prudence_ref_get_unless_zero(&ref);
        else
            last = prudence_ref_put(&ref);
        if (last || prudence_ref_count(&ref) <= PRUDENCE_REF_MAX)
            abort();
    }
    if (prudence_ref_put(&ref) || !prudence_ref_get_unless_zero(&ref))
        abort();
}

static void a_fault_is_reported_once(char fault, uint32_t count)
{
    char output[4096];
    const char *report;

    faulty.fault = fault;
    faulty.count = count;
    expect_life(make_fault, NULL, output, sizeof output);
    report = strstr(output, "prudence_ref_");
    assert_non_null(report);
    assert_non_null(strstr(report, "is never freed"));
    assert_null(strstr(report + 1, "prudence_ref_"));
}

TEST(faults_saturate_the_count)
{
    a_fault_is_reported_once('g', 0);
    a_fault_is_reported_once('g', PRUDENCE_REF_MAX);
    a_fault_is_reported_once('u', PRUDENCE_REF_MAX);
    a_fault_is_reported_once('p', 0);
}

/* Uses the highest valid count. */
TEST(counts_go_as_far_as_they_say)
{
    struct prudence_ref ref;

    prudence_ref_init(&ref, PRUDENCE_REF_MAX - 2);
    prudence_ref_get(&ref);
    assert_true(prudence_ref_get_unless_zero(&ref));
    assert_int_equal(prudence_ref_count(&ref), PRUDENCE_REF_MAX);
    assert_false(prudence_ref_put(&ref));
    assert_int_equal(prudence_ref_count(&ref), PRUDENCE_REF_MAX - 1);
}

static struct prudence_ref shared;
static unsigned lasts, begun;

/* Each thread has a reference, takes more and puts them; one of them does the last put. */
static void *take_and_put(void *unused)
{
    __atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < THREADS)
        ;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i % 2)
            prudence_ref_get(&shared);
        else if (!prudence_ref_get_unless_zero(&shared))
            abort();
        if (prudence_ref_put(&shared))
            abort();
    }
    __atomic_fetch_add(&lasts, prudence_ref_put(&shared), __ATOMIC_RELAXED);
    return unused;
}

TEST(of_many_threads_one_is_the_last)
{
    pthread_t threads[THREADS];

    prudence_ref_init(&shared, THREADS);
    threads_start(threads, THREADS, take_and_put);
    threads_join(threads, THREADS);
    assert_int_equal(lasts, 1);
    assert_int_equal(prudence_ref_count(&shared), 0);
}

SUITE()
