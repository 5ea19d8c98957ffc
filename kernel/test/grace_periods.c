// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests overlapping grace periods of the kernel (src/core/gp/kernel). */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>

#include "gp_numbers.h"
#include "test.h"

#define ROUNDS   3
#define TRIES    10
#define PATIENCE 1000 /* times 20 ms, if a request is lost */

static int expedite(void *begun)
{
    WRITE_ONCE(*(bool *)begun, true);
    synchronize_rcu_expedited();
    while (!kthread_should_stop())
        schedule_timeout_interruptible(1);
    return 0;
}

/* Returns whether a grace period, normal or expedited, has begun since `before` was taken. Waits
 * for up to a second; one requested by others may be in progress and wait for the reader. */
static bool has_begun(const struct rcu_gp_seq *before, bool expedited)
{
    struct rcu_gp_seq now;
    unsigned int i;

    for (i = 0; i < 50; i++) {
        get_state_synchronize_rcu_full(&now);
        if (expedited ? now.GP_EXP != before->GP_EXP : now.GP_NORM != before->GP_NORM)
            return true;
        msleep(20);
    }
    return false;
}

static bool defer_during_an_expedited_one(struct prudence_cache *cache)
{
    struct rcu_gp_seq before;
    struct task_struct *other;
    unsigned int i;
    bool begun = false, both;

    objects[0] = prudence_cache_alloc(cache, GFP_KERNEL);
    synchronize_rcu();
    reader_enters();
    get_state_synchronize_rcu_full(&before);
    other = kthread_run(expedite, &begun, "prudence_expedite");
    both = has_begun(&before, true);
    get_state_synchronize_rcu_full(&before);
    prudence_cache_free_deferred(cache, objects[0]);
    prudence_cache_shrink(cache); /* closes the batch */
    both = has_begun(&before, false) && both;
    reader_steps_out();
    for (i = 0; i < PATIENCE && STAT(cache, objects_latent); i++) {
        msleep(20);
        prudence_cache_shrink(cache);
    }
    EXPECT_EQ(STAT(cache, objects_latent), 0);
    kthread_stop(other);
    reader_leaves();
    return both;
}

void grace_period_is_not_lost_during_an_expedited_one(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int rounds = 0, tries;

    for (tries = 0; tries < TRIES && rounds < ROUNDS; tries++)
        rounds += defer_during_an_expedited_one(cache);
    if (!rounds) /* 7.2 begins normal ones first, so none can get lost in this way */
        pr_info("# no normal grace period began, %u times\n", tries);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

/* Defers batches while many grace periods begin. The kernel writes their numbers to several places,
 * one after the other; tools/kernel/boot makes it pause in between. */
#define SECTIONS    4000
#define IN_SECTION  512 /* objects, enough for several batches */

static int begin_grace_periods(void *unused)
{
    while (!kthread_should_stop())
        synchronize_rcu();
    return 0;
}

/* Marks each object with the section's number and defers it. Returns how many objects came back
 * with that number, which must be none. */
static unsigned int early_in_section(struct prudence_cache *cache, u32 section)
{
    unsigned int i, early = 0;

    rcu_read_lock();
    for (i = 0; i < IN_SECTION; i++) {
        u32 *object = prudence_cache_alloc(cache, GFP_NOWAIT | __GFP_NOWARN);

        if (!object)
            break;
        early += *object == section;
        *object = section;
        prudence_cache_free_deferred(cache, object);
    }
    rcu_read_unlock();
    return early;
}

static void forget_section(void *object)
{
    memset(object, 0, SIZE);
}

void nothing_comes_back_in_the_section_it_was_deferred_in(void)
{
    struct prudence_cache *cache = prudence_cache_create("test", SIZE, 0, 0, forget_section);
    struct task_struct *other = kthread_run(begin_grace_periods, NULL, "prudence_begin");
    unsigned int early = 0;
    u32 section;

    for (section = 1; section <= SECTIONS; section++) {
        early += early_in_section(cache, section);
        cond_resched();
    }
    EXPECT_EQ(early, 0);
    kthread_stop(other);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}
