/* SPDX-License-Identifier: MIT */
/*
 * A fork that cannot fence the CPUs of other threads. On each CPU, one operation may end while the
 * process is copied. The child uses notes taken before: a push whose object may be missing did not
 * happen, and a pop did. A take may also have come in between.
 *
 * ctest: not-with thread (one thread)
 */
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "support/slab_test.h"

static char token;
static void *objects[OBJECTS_MAX];
static struct cpu_note *notes;
static struct prudence_cache *cache;

static struct cpu_cache *cpu(void)
{
    return cpu_cache_of(cache, 3);
}

/* Puts free and latent objects on a CPU, then takes notes as a fork does. */
static int begin(void **state)
{
    cache = fixed_cache(64, 64, manual_domain());
    injected_cpu = 3;
    allocate_all(cache, objects, 20);
    free_all(cache, objects, 10);
    defer_all(cache, objects + 10, 10);
    notes = os_meta_alloc(os_cpu_count() * sizeof *notes);
    cpu_cache_claim_all(cache, &token);
    cpu_cache_note_all(cache, notes);
    return 0;
}

/* Repairs the caches as a child does, then uses all of them. */
static void go_on(unsigned free, unsigned latent)
{
    cpu_cache_repair_all(cache, &token, notes);
    assert_int_equal(stack_count(&cpu()->line), free);
    assert_int_equal(latent_cache_count(cpu()), latent);
    cpu_cache_release_all(cache, &token, false);
    for (unsigned i = 0; i < os_cpu_count(); i++)
        assert_int_equal(load_relaxed(&cpu_cache_of(cache, i)->line.owner), 0);
    allocate_all(cache, objects, 100);
    for (unsigned i = 0; i < 100; i++)
        assert_non_null(objects[i]);
}

TEST(nothing_has_come, begin)
{
    unsigned free = stack_count(&cpu()->line);

    go_on(free, 10);
}

/* The child sees the new count, but not the object. */
TEST(a_push_has_come, begin)
{
    unsigned free = stack_count(&cpu()->line);

    cpu()->line.stack[free] = (void *)1;
    store_relaxed(&cpu()->line.stack_word, cpu()->line.stack_word + 1);
    go_on(free, 10);
}

TEST(an_append_has_come, begin)
{
    unsigned free = stack_count(&cpu()->line);

    cpu()->line.ring[cpu()->line.ring_tail & cpu()->line.ring_mask] = (void *)1;
    store_relaxed(&cpu()->line.ring_tail, cpu()->line.ring_tail + 1);
    go_on(free, 10);
}

TEST(a_pop_has_come, begin)
{
    unsigned free = stack_count(&cpu()->line);

    store_relaxed(&cpu()->line.stack_word, cpu()->line.stack_word + STACK_POP);
    go_on(free - 1, 10);
}

/* Nobody knows how far the take got, so the caches may contain anything. */
TEST(a_take_has_come, begin)
{
    store_relaxed(&cpu()->line.owner, (uintptr_t)&objects);
    cpu()->line.stack = (void **)16;
    go_on(0, 0);
}

TEST(no_memory_for_notes, begin)
{
    unsigned free = stack_count(&cpu()->line);
    struct cpu_note *there = notes;

    notes = NULL;
    cpu()->line.stack[free] = (void *)1;
    store_relaxed(&cpu()->line.stack_word, cpu()->line.stack_word + 1);
    go_on(free, 9);
    notes = there;
}

SUITE(pin_thread(), inject_topology())
