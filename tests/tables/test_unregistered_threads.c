/* SPDX-License-Identifier: MIT */
/*
 * Threads without registered restartable sequences run with registered ones on the same CPUs. The
 * C library leaves the numbers -1 and -2 in their struct rseq. No object may be lost or handed out
 * twice, and a thread that registers again uses the fast paths again.
 *
 * ctest: inlined-too
 */
#include "support/marked_objects.h"
#include "support/rseq.h"

#define THREADS 6
#define ROUNDS  150
#define EACH    16
#define TRIES   10

static struct prudence_cache *cache;

static void require_rseq(void)
{
    if (!os_percpu_rseq || !rseq_unregister())
        skip();
    assert_true(rseq_register());
}

/* Returns whether the fast path itself works. Tries repeatedly, because an interruption also makes
 * it fail. */
static bool is_served(void)
{
    void *object = NULL;

    for (unsigned i = 0; i < TRIES && !object; i++)
        object = os_percpu_pop(&cache->percpu);
    while (object && !os_percpu_push(&cache->percpu, object))
        ;
    return object;
}

static void make_room(void)
{
    void *objects[EACH];

    for (unsigned i = 0; i < 4; i++) {
        allocate_all(cache, objects, EACH);
        free_all(cache, objects, EACH);
    }
}

TEST(a_thread_may_leave_and_come_back)
{
    static const uint32_t numbers[] = {UINT32_MAX, UINT32_MAX - 1, UINT32_MAX / 2};
    void *objects[EACH];

    require_rseq();
    cache = fixed_cache(64, 64, NULL);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        make_room();
        assert_true(is_served());
        assert_true(rseq_unregister());
        assert_int_equal(rseq_struct()[1], UINT32_MAX);
        rseq_struct()[1] = numbers[i];
        assert_false(is_served());
        assert_null(os_percpu_top(&cache->percpu));
        assert_false(os_percpu_append(&cache->percpu, &cache));
        make_room();
        allocate_all(cache, objects, EACH);
        defer_all(cache, objects, EACH / 2);
        free_all(cache, objects + EACH / 2, EACH / 2);
        objects[0] = prudence_cache_alloc(cache);
        objects[0] = prudence_cache_replace(cache, objects[0]);
        assert_non_null(objects[0]);
        prudence_cache_free(cache, objects[0]);
        check_books(cache);
        assert_true(rseq_register());
        make_room();
        assert_true(is_served());
    }
    destroy_empty(cache);
}

/* Unregisters every second thread in every second round. */
static void *work(void *argument)
{
    uintptr_t me = (uintptr_t)argument;

    for (unsigned round = 0; round < ROUNDS; round++) {
        bool leaves = me % 2 && round % 2;

        if (leaves && !rseq_unregister())
            __atomic_fetch_add(&marked_faults, 1, __ATOMIC_RELAXED);
        marked_turn(me);
        if (leaves && !rseq_register())
            __atomic_fetch_add(&marked_faults, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(with_registered_ones)
{
    require_rseq();
    marked_threads(THREADS, ROUNDS, work);
}

SUITE(prudence_free(prudence_malloc(1)))
