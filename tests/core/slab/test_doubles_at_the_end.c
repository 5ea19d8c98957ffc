/* SPDX-License-Identifier: MIT */
/*
 * An object given back twice is found when the process ends, wherever both copies are, and although
 * no grace period ends. Caches of CPUs that other threads own are passed over and counted.
 */
#include <assert.h>
#include <unistd.h>

#include "gp/user/domain.h"
#include "os/posix/posix.h"
#include "slab/all_caches.h"
#include "slab/double_free.h"
#include "slab/latent_cache.h"
#include "slab/misuse.h"
#include "slab/start.h"
#include "support/slab_test.h"
#include "support/threads.h"

#define OTHERS 4

static struct prudence_cache *cache;
static void *object, *others[OTHERS];
static char pointer[40];
static bool injected;

struct misuse {
    bool defers[2];    /* frees otherwise */
    unsigned between;  /* other objects, given back in the same way as the first copy */
    bool on_other_cpu; /* gives back the second copy there */
};

static void give_back(bool defers, void *given)
{
    if (defers)
        prudence_cache_free_deferred(cache, given);
    else
        prudence_cache_free(cache, given);
}

static void misuse_and_end(const struct misuse *misuse)
{
    give_back(misuse->defers[0], object);
    for (unsigned i = 0; i < misuse->between; i++)
        give_back(misuse->defers[0], others[i]);
    if (misuse->on_other_cpu)
        injected_cpu = 33;
    give_back(misuse->defers[1], object);
    os_report("not at the call");
    double_free_look(false);
}

static void copies_meet(void **state)
{
    for (unsigned i = 0; i < 16; i++) {
        struct misuse misuse = {{i & 1, i & 2}, i & 4 ? 1 : OTHERS, i & 8};

        if (misuse.on_other_cpu && !injected)
            continue;
        expect_death(misuse_and_end(&misuse), "not at the call",
                     misuse.defers[0] || misuse.defers[1] ? "end of the process: "
                                                          : "end of the process: double free: 0x",
                     pointer);
    }
}

/* Both copies are in a ring that has no room for another cookie, so the last batch cannot be closed
 * before others have gone. */
static void copies_meet_in_a_ring_without_places(void **state)
{
    struct misuse misuse = {{true, true}, OTHERS, false};
    struct cpu_cache *cpu = cpu_here(cache);
    unsigned slots = cpu->batch_mask + 1;
    void *more[64];

    assert_true(slots <= 64);
    allocate_all(cache, more, slots);
    for (unsigned i = 0; i < slots; i++) {
        prudence_cache_free_deferred(cache, more[i]);
        cpu = cpu_cache_take(cache, &misuse);
        assert_non_null(cpu);
        cpu->batch_tail++; /* as if each batch had its own cookie */
        batches_of(cpu)[(cpu->batch_tail - 1) & cpu->batch_mask] =
            (struct batch){.end = cpu->line.ring_tail, .cookie = gp_snapshot(cache->domain)};
        cpu->closed = cpu->line.ring_tail;
        cpu_cache_release(cpu);
    }
    expect_death(misuse_and_end(&misuse), "end of the process: 0x", pointer, "already deferred");
    prudence_manual_advance(cache->domain);
    prudence_cache_shrink(cache);
}

/* Caches that another thread owns are passed over, and are read again after their release. */
static void what_others_own_is_passed_over(void **state)
{
    uint64_t before = double_free_passed_over();
    struct cpu_cache *cpu;

    prudence_cache_free(cache, prudence_cache_alloc(cache));
    cpu = cpu_cache_take(cache, &before);
    assert_non_null(cpu);
    double_free_look(false);
    assert_int_equal(double_free_passed_over(), before + 1);
    assert_true(os_percpu_confirm(&cpu->line, &before) || os_percpu_is_inside(&cpu->line));
    cpu_cache_release(cpu);
    double_free_look(false);
    assert_int_equal(double_free_passed_over(), before + 1);
}

static void *look(void *unused)
{
    double_free_look(false);
    return unused;
}

static void a_locked_list_is_not_waited_for(void **state)
{
    uint64_t before = double_free_passed_over();

    os_lock_take(&slab_caches_lock);
    in_thread(look, NULL);
    os_lock_release(&slab_caches_lock);
    assert_int_equal(double_free_passed_over(), before + os_cpu_count());
}

/* Without misuse, the check reports nothing, changes no statistics, and leaves the caches
 * usable. */
static void the_look_harms_nothing(void **state)
{
    static void *objects[200];
    struct prudence_cache_stats before, after;

    allocate_all(cache, objects, 200);
    free_all(cache, objects, 60);
    defer_all(cache, objects + 60, 60);
    before = stats_of(cache);
    double_free_look(false);
    check_books(cache);
    after = stats_of(cache);
    assert_int_equal(after.objects_live, before.objects_live);
    assert_int_equal(after.objects_latent, before.objects_latent);
    assert_int_equal(stack_count(&cpu_here(cache)->line), 0);
    assert_int_equal(latent_cache_count(cpu_here(cache)), 0);
    free_all(cache, objects + 120, 80);
    prudence_manual_advance(cache->domain);
}

static int make_cache(void **state)
{
    injected_cpu = 0;
    cache = fixed_cache(64, 32, manual_domain());
    object = prudence_cache_alloc(cache);
    allocate_all(cache, others, OTHERS);
    snprintf(pointer, sizeof pointer, "%p of cache 'test'", object);
    return 0;
}

static int end_cache(void **state)
{
    prudence_cache_free(cache, object);
    free_all(cache, others, OTHERS);
    destroy_empty(cache);
    store_relaxed(&slab_end, SLAB_END_NOT_YET);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_meet, make_cache, end_cache),
        cmocka_unit_test_setup_teardown(copies_meet_in_a_ring_without_places, make_cache,
                                        end_cache),
        cmocka_unit_test_setup_teardown(what_others_own_is_passed_over, make_cache, end_cache),
        cmocka_unit_test_setup_teardown(a_locked_list_is_not_waited_for, make_cache, end_cache),
        cmocka_unit_test_setup_teardown(the_look_harms_nothing, make_cache, end_cache),
    };
    int failed;

    pin_thread();
    failed = cmocka_run_group_tests_name("of this machine", tests, NULL, NULL);
    inject_topology();
    assert(slab_start());
    injected = true;
    return failed + cmocka_run_group_tests_name("64 CPUs", tests, NULL, NULL);
}
