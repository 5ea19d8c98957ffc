/* SPDX-License-Identifier: MIT */
/*
 * The budget of a CPU is used up, and a cache shrinks for another. A signal handler forks in that
 * time. The child ends what the handler interrupted, and can destroy both caches.
 *
 * ctest: not-with thread (ThreadSanitizer: no threads in forked children, no exit with threads)
 */
#include "slab/reclaim/budget.h"
#include "support/slab_test.h"

#define GIVER 4000 /* objects that it wants in its object cache */
#define ASKER 3000

static struct prudence_cache *giver, *asker;
static void *objects[GIVER];
static pid_t child = -1;

/* Stands for the handler: comes with each request for memory. */
static bool fork_while_it_gives(void)
{
    if (child < 0 && load_relaxed(&giver->body->visitors)) {
        child = fork();
        if (child == 0)
            alarm(CHILD_PATIENCE);
    }
    return false;
}

static void churn(struct prudence_cache *cache, unsigned count)
{
    allocate_all(cache, objects, count);
    free_all(cache, objects, count);
}

static int destroy_both(void)
{
    return prudence_cache_destroy(giver) || prudence_cache_destroy(asker);
}

TEST(a_cache_that_gave_can_be_destroyed_in_the_child)
{
    int status;

    giver = fixed_cache(256, 0, NULL);
    asker = fixed_cache(256, 0, NULL);
    for (unsigned i = 0; i < 12; i++)
        churn(giver, GIVER);
    os_memory_fails = fork_while_it_gives;
    for (unsigned i = 0; i < 60 && child < 0; i++)
        churn(asker, ASKER);
    os_memory_fails = NULL;
    if (child == 0)
        _exit(destroy_both());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(giver->body->visitors, 0);
    assert_int_equal(destroy_both(), 0);
}

SUITE(pin_thread(), prudence_option_set("cache_per_cpu", "1M"))
