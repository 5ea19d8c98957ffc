// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests of memory shortage. */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "test.h"

/* Rule 9. The test refuses pages once this many bytes are in use. */
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
        EXPECT(objects[i] != NULL); /* the deferred objects suffice */
    }
    EXPECT(STAT(cache, pressure_waits) > 0);
    prudence_inject_failures(NULL);
    for (i = 0; i < MANY + more; i++)
        prudence_cache_free(cache, objects[i]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* A caller that prefers failure to waiting (__GFP_NORETRY) does not wait for a grace period. */
void allocation_that_is_not_to_be_retried_does_not_wait(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    gfp_t gfp = GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN;
    unsigned int more = 0;
    void *object;
    u64 waits;

    EXPECT_EQ(fill(cache, MANY), MANY);
    memory_ends_here();
    reader_enters();
    defer(cache, MANY);
    waits = totals().waits;
    while (more < MANY && (object = prudence_cache_alloc(cache, gfp)))
        objects[MANY + more++] = object;
    EXPECT(more < MANY);
    EXPECT(!prudence_kmalloc(4 * PAGE_SIZE, gfp));
    EXPECT_EQ(totals().waits, waits);
    prudence_inject_failures(NULL);
    reader_leaves();
    while (more)
        prudence_cache_free(cache, objects[MANY + --more]);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

#define LARGE 16384

static struct prudence_cache *past_limit;
static unsigned int wanted, refused;
static bool all_taken;

static int take_them(void *unused)
{
    unsigned int i;

    for (i = 0; i < wanted; i++) {
        objects[i] = prudence_cache_alloc(past_limit, GFP_KERNEL);
        refused += !objects[i];
    }
    WRITE_ONCE(all_taken, true);
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

static void wait_until_one_is_held_back(u64 before)
{
    unsigned int i;

    for (i = 0; i < 500 && totals().throttle_waits == before; i++)
        msleep(20);
    EXPECT(totals().throttle_waits > before);
}

void allocation_past_the_latent_limit_waits_before_its_cache_grows(void)
{
    u64 before = totals().throttle_waits, expired = totals().expiries;
    struct task_struct *taker;
    unsigned int i;
    void *object;

    past_limit = cache_of(LARGE);
    wanted = totals().latent_limit / LARGE + 64;
    if (wanted > RING + MANY) {
        pr_info("# latent_limit_kb is too large for this test\n");
        wanted = 0;
    }
    WRITE_ONCE(all_taken, false);
    for (i = 0; i < wanted; i++)
        objects[i] = prudence_cache_alloc(past_limit, GFP_KERNEL);
    EXPECT_EQ(totals().throttle_waits, before); /* nothing is latent */
    reader_enters();
    defer(past_limit, wanted);
    object = prudence_cache_alloc(past_limit, GFP_NOWAIT);
    EXPECT(object != NULL); /* not held back */
    EXPECT_EQ(totals().throttle_waits, before);
    taker = kthread_run(take_them, NULL, "prudence_taker");
    if (wanted)
        wait_until_one_is_held_back(before);
    msleep(20);
    EXPECT(!wanted || !READ_ONCE(all_taken));
    reader_leaves();
    while (!READ_ONCE(all_taken))
        msleep(20);
    kthread_stop(taker);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(totals().expiries, expired);
    for (i = 0; i < wanted; i++)
        prudence_cache_free(past_limit, objects[i]);
    prudence_cache_free(past_limit, object);
    EXPECT_EQ(prudence_cache_destroy(past_limit), 0);
}
