// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Interrupts use all of it, too. */
#include <linux/delay.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include "test.h"

static atomic_t in_interrupt_failed;

void use_in_interrupt(void *cache)
{
    unsigned int i;

    for (i = 0; i < 300; i++) {
        void *object = prudence_cache_alloc(cache, GFP_ATOMIC);

        if (!object)
            atomic_inc(&in_interrupt_failed);
        else if (i % 3)
            prudence_cache_free_deferred(cache, object);
        else
            prudence_cache_free(cache, object);
    }
}

long use_in_task(void *cache)
{
    use_in_interrupt(cache);
    return 0;
}

/* On PREEMPT_RT no pages can be had there: what tasks have left behind is all there is. */
void hard_interrupts_may_do_everything(void)
{
    struct prudence_cache *cache = cache_of(SIZE);
    unsigned int i, cpu;

    atomic_set(&in_interrupt_failed, 0);
    for_each_online_cpu(cpu)
        work_on_cpu(cpu, use_in_task, cache);
    EXPECT_EQ(atomic_read(&in_interrupt_failed), 0);
    for (i = 0; i < 20; i++)
        on_each_cpu(use_in_interrupt, cache, 1);
    if (IS_ENABLED(CONFIG_PREEMPT_RT))
        EXPECT(atomic_read(&in_interrupt_failed) < 20 * 300 * num_online_cpus());
    else
        EXPECT_EQ(atomic_read(&in_interrupt_failed), 0);
    EXPECT_EQ(STAT(cache, objects_live), 0);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
}

#define BLOCKS      20
#define BLOCK_BYTES (16 * PAGE_SIZE)

static void free_blocks(void *unused)
{
    unsigned int i;

    for (i = 0; i < BLOCKS; i++)
        prudence_kfree(objects[i]);
}

/* A little later where the page allocator's locks may not be taken there (PREEMPT_RT). */
void pages_that_an_interrupt_frees_are_given_back(void)
{
    unsigned int i;
    u64 used;

    for (i = 0; i < BLOCKS; i++) {
        objects[i] = prudence_kmalloc(BLOCK_BYTES, GFP_KERNEL);
        EXPECT(objects[i] != NULL);
    }
    used = totals().page_bytes;
    smp_call_function_single(cpumask_last(cpu_online_mask), free_blocks, NULL, 1);
    for (i = 0; i < 250 && totals().page_bytes > used - BLOCKS * BLOCK_BYTES; i++)
        msleep(20);
    EXPECT(totals().page_bytes <= used - BLOCKS * BLOCK_BYTES);
}
