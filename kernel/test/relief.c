// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Latent memory that nobody comes back to (kernel/relief.c), and too much of it (kernel/limits.c). */
#include <linux/delay.h>
#include <linux/mm.h>

#include "test.h"

#define BLOCK_BYTES (16 * PAGE_SIZE)
#define PATIENCE    100 /* times 50 ms; a debug kernel is slow */

void latent_objects_of_a_quiet_cache_are_merged(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    u64 slabs;
    unsigned int i;

    EXPECT_EQ(fill(cache, MANY), MANY);
    slabs = STAT(cache, slabs_now);
    defer(cache, MANY);
    for (i = 0; i < PATIENCE && STAT(cache, objects_latent); i++) {
        wake_all_cpus();
        msleep(50);
    }
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    EXPECT(STAT(cache, slabs_now) < slabs);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

void deferred_blocks_are_given_back_unasked(void)
{
    u64 used = totals().page_bytes;
    unsigned int i;

    for (i = 0; i < 20; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    EXPECT(totals().page_bytes >= used + 20 * BLOCK_BYTES);
    for (i = 0; i < 20; i++)
        prudence_kfree_deferred(objects[i]);
    for (i = 0; i < PATIENCE && totals().page_bytes > used; i++) {
        wake_all_cpus();
        msleep(50);
    }
    EXPECT(totals().page_bytes <= used);
}

/* The budget is 1/64 of memory, unless it is set. A reader keeps grace periods from ending. */
void latent_memory_beyond_its_budget_is_expedited(void)
{
    u64 budget = (u64)totalram_pages() << PAGE_SHIFT >> 6, expedited;
    unsigned int i, wait, count = min_t(u64, budget / BLOCK_BYTES + 64, RING);

    for (i = 0; i < count; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    reader_enters();
    expedited = totals().expedited;
    for (i = 0; i < count / 2; i++)
        prudence_kfree_deferred(objects[i]);
    msleep(100);
    EXPECT_EQ(totals().expedited, expedited);
    for (; i < count; i++)
        prudence_kfree_deferred(objects[i]);
    for (wait = 0; wait < 200 && totals().expedited == expedited; wait++)
        msleep(50);
    EXPECT(totals().expedited > expedited);
    reader_leaves();
}
