// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* When memory is short. */
#include "test.h"

/* Rule 9. The system has no pages beyond those that are in use now. */
static u64 pages_there;

static bool no_memory(void)
{
    return totals().page_bytes >= pages_there;
}

static void memory_ends_here(void)
{
    pages_there = totals().page_bytes;
    prudence_inject_failures(no_memory);
}

void allocation_waits_for_latent_memory_before_it_fails(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, more = 0;
    void *object;

    EXPECT_EQ(fill(cache, MANY), MANY);
    memory_ends_here();
    while (more < MANY && (object = prudence_cache_alloc(cache, GFP_NOWAIT | __GFP_NOWARN)))
        objects[MANY + more++] = object;
    EXPECT(more < MANY); /* GFP_NOWAIT fails */
    defer(cache, MANY);
    for (i = 0; i < MANY; i++) {
        objects[i] = prudence_cache_alloc(cache, GFP_KERNEL);
        EXPECT(objects[i] != NULL); /* what was deferred is enough */
    }
    EXPECT(STAT(cache, pressure_waits) > 0);
    prudence_inject_failures(NULL);
    for (i = 0; i < MANY + more; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
