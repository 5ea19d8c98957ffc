// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The subjects of the comparison: Prudence, SLUB with each way to reclaim after a grace period, and
 * both with plain frees. */
#include <linux/kernel.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>

#include "bench.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
#define headless_free(object) kfree_rcu_mightsleep(object)
#else
#define headless_free(object) kfree_rcu(object)
#endif

/* All subjects may sleep, reclaim and wait for memory that others free before they fail, and never
 * invoke the OOM killer. */
static gfp_t flags = GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;

void subjects_try_until_killed(void)
{
    flags = GFP_KERNEL;
}

static void *slub_alloc(size_t size)
{
    return kmalloc(size, flags);
}

static void *our_alloc(size_t size)
{
    return prudence_kmalloc(size, flags);
}

static void our_defer(void *object)
{
    prudence_kfree_deferred(object);
}

static void our_free(void *object)
{
    prudence_kfree(object);
}

static void head_free(void *object)
{
    struct headed *headed = object;

    kfree_rcu(headed, rcu);
}

static void no_head_free(void *object)
{
    headless_free(object);
}

static void free_in_callback(struct rcu_head *head)
{
    kfree(container_of(head, struct headed, rcu));
}

static void callback_free(void *object)
{
    struct headed *headed = object;

    call_rcu(&headed->rcu, free_in_callback);
}

static void plain_free(void *object)
{
    kfree(object);
}

const struct subject subjects[SUBJECTS] = {
    {"prudence", our_alloc, our_defer, 1},
    {"kfree_rcu", slub_alloc, head_free, sizeof(struct headed)},
    {"kfree_rcu-headless", slub_alloc, no_head_free, 1},
    {"call_rcu", slub_alloc, callback_free, sizeof(struct headed)},
    {"kmalloc-kfree", slub_alloc, plain_free, 1},
    {"prudence-free", our_alloc, our_free, 1},
};

bool subject_is_ours(const struct subject *subject)
{
    return subject->alloc == our_alloc;
}

const struct subject *subject_of(const char *name)
{
    unsigned int i;

    for (i = 0; i < ARRAY_SIZE(subjects); i++)
        if (!strcmp(subjects[i].name, name))
            return &subjects[i];
    return NULL;
}

void subjects_in_turns(const size_t *sizes, size_t count,
                       void (*run)(const struct subject *subject, size_t size, unsigned int round))
{
    const struct subject *only = *subject_name ? subject_of(subject_name) : NULL;
    unsigned int round, i, j;

    for (i = 0; i < count; i++)
        for (round = 0; round < rounds && (!only_size || sizes[i] == only_size); round++)
            for (j = 0; j < SUBJECTS; j++) {
                const struct subject *subject = &subjects[(j + round) % SUBJECTS];

                if (!*subject_name || subject == only)
                    run(subject, sizes[i], round);
            }
}
