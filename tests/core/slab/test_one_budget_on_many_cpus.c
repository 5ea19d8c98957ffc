/* SPDX-License-Identifier: MIT */
/*
 * The caches of all CPUs together stay below a total, and no CPU is starved: on 1 to 256 CPUs.
 *
 * Memory of destroyed caches waits in graves, and its size follows from the number of nodes. So
 * that number is injected before the first cache is made, and stays.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "os/posix/posix.h"
#include "slab/object_cache.h"
#include "slab/reclaim/budget.h"
#include "slab/start.h"
#include "support/slab_test.h"

#define MIB    ((int64_t)1 << 20)
#define OWN    (2 * MIB)   /* option cache_per_cpu of this test */
#define TOTAL  (256 * MIB) /* cache_total */
#define CPUS   256
#define NODES  8
#define CACHES 200

static unsigned current_cpu(void)
{
    return injected_cpu;
}

static int64_t used(unsigned cpu)
{
    return load_relaxed(&slab_budgets[cpu].used);
}

/* Each of 200 caches wants 128 KiB on each of 256 CPUs, 6.7 GB in all. */
TEST(all_cpus_stay_under_the_total)
{
    const int64_t floor = (int64_t)2 * 256; /* objects */
    struct prudence_cache *caches[CACHES];
    int64_t all = 0, most = 0, least = INT64_MAX;

    for (unsigned i = 0; i < CACHES; i++) {
        caches[i] = fixed_cache(256, 0, NULL);
        assert_int_equal(budget_least(caches[i]), 2);
    }
    for (injected_cpu = 0; injected_cpu < CPUS; injected_cpu++) {
        for (unsigned i = 0; i < CACHES; i++)
            for (unsigned size = caches[i]->body->size_min; size <= 512; size *= 2)
                cpu_cache_grow(caches[i], size);
        all += used(injected_cpu);
        most = used(injected_cpu) > most ? used(injected_cpu) : most;
        least = used(injected_cpu) < least ? used(injected_cpu) : least;
    }
    assert_true(all <= TOTAL + CPUS * CACHES * floor);
    assert_true(most <= OWN + CACHES * floor);
    assert_true(least >= TOTAL / 4 / CPUS - 512 * 256 / 2); /* no CPU is starved */
    injected_cpu = 0;
    for (unsigned i = 0; i < CACHES; i++)
        assert_int_equal(prudence_cache_destroy(caches[i]), 0);
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        assert_int_equal(used(cpu), 0);
}

/* Checks by arithmetic, for 200 caches of small objects on any number of CPUs, that twice the
 * floors fit into a CPU's guaranteed share, and that a cache may use all of that share. */
TEST(the_bound_holds_for_any_number_of_cpus)
{
    static const unsigned cpus[] = {1, 2, 16, 64, 256};

    for (unsigned i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        int64_t kept = TOTAL / 4 / cpus[i], floors;
        struct prudence_cache *cache;

        posix_topology_inject(cpus[i], NODES, current_cpu);
        assert_true(slab_start());
        cache = fixed_cache(64, 0, NULL);
        floors = CACHES * 2 * budget_charge(cache, cpu_here(cache), budget_least(cache));
        assert_true(floors <= (kept < OWN ? kept : OWN));
        assert_true(
            budget_allows(cache, cpu_here(cache), (unsigned)min_size((size_t)kept / 128, 8192)));
        destroy_empty(cache);
    }
}

static void inject_nodes(void)
{
    posix_topology_inject(CPUS, NODES, current_cpu);
    if (!slab_start())
        abort();
}

SUITE(inject_nodes(), prudence_option_set("cache_per_cpu", "2M"))
