// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Tests how pages are requested and freed, by the page allocator's tracepoints. */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/tracepoint.h>
#include <trace/events/kmem.h>

#include "test.h"

#define SEEN_MAX    64
#define LARGE_ORDER 4

static struct {
    struct task_struct *task;
    unsigned int count;
    struct {
        struct page *page;
        unsigned int order;
        gfp_t gfp;
    } of[SEEN_MAX];
} seen;

/* Called in any context, with preemption off. */
static void see(void *unused, struct page *page, unsigned int order, gfp_t gfp, int migratetype)
{
    if (current != READ_ONCE(seen.task) || !in_task() || seen.count >= SEEN_MAX)
        return;
    seen.of[seen.count].page = page;
    seen.of[seen.count].order = order;
    seen.of[seen.count++].gfp = gfp;
}

struct event {
    const char *name;
    struct tracepoint *tracepoint;
};

static void find_it(struct tracepoint *tracepoint, void *data)
{
    struct event *event = data;

    if (!strcmp(tracepoint->name, event->name))
        event->tracepoint = tracepoint;
}

/* Has `probe` called at each event until it is forgotten. Returns false if this kernel cannot. */
static bool follow(struct event *event, void *probe)
{
    for_each_kernel_tracepoint(find_it, event);
    if (event->tracepoint && !tracepoint_probe_register(event->tracepoint, probe, NULL))
        return true;
    pr_info("# SKIP: this kernel has no event %s\n", event->name);
    return false;
}

static void forget(struct event *event, void *probe)
{
    tracepoint_probe_unregister(event->tracepoint, probe, NULL);
    tracepoint_synchronize_unregister();
}

static void watch(void)
{
    seen.count = 0;
    WRITE_ONCE(seen.task, current);
}

/* Ends watch(). Returns false if the allocation of the object's pages was not seen. */
static bool saw_pages_of(const void *object, unsigned int *order, gfp_t *asked)
{
    bool is_seen = false;
    unsigned int i;

    WRITE_ONCE(seen.task, NULL);
    EXPECT(object != NULL);
    for (i = 0; i < seen.count && object; i++) {
        if (seen.of[i].page != virt_to_head_page(object))
            continue;
        *order = seen.of[i].order;
        *asked = seen.of[i].gfp;
        is_seen = true;
    }
    return is_seen;
}

/* Makes the first slab of a new cache. */
static bool grow(size_t size, gfp_t gfp, unsigned int *order, gfp_t *asked)
{
    struct prudence_cache *cache = cache_of(size);
    bool is_seen;
    void *object;

    watch();
    object = prudence_cache_alloc(cache, gfp);
    is_seen = saw_pages_of(object, order, asked);
    prudence_cache_free(cache, object);
    EXPECT_EQ(prudence_cache_destroy(cache), 0);
    return is_seen;
}

#define WORK_OF_OTHERS (__GFP_RECLAIM | __GFP_HIGH | __GFP_MEMALLOC | __GFP_NOFAIL)

/* Grows by more pages than the objects need, which is one. */
static void grow_more_than_needed(size_t size, gfp_t gfp)
{
    unsigned int order = 0;
    gfp_t asked = 0;

    EXPECT(grow(size, gfp, &order, &asked));
    if (!order) { /* not available, so just the pages needed, with the caller's flags */
        pr_info("# no more than needed: order %u, gfp %x\n", order, (__force unsigned int)asked);
        return;
    }
    EXPECT_EQ((__force unsigned int)(asked & WORK_OF_OTHERS), 0);
    EXPECT(asked & __GFP_NOMEMALLOC);
    EXPECT(asked & __GFP_NOWARN);
}

/* A large block takes just the pages that it needs. */
static void grow_as_much_as_needed(gfp_t gfp)
{
    unsigned int order = ~0u;
    gfp_t asked = 0;
    void *block;

    watch();
    block = prudence_kmalloc(PAGE_SIZE << LARGE_ORDER, gfp);
    EXPECT(saw_pages_of(block, &order, &asked));
    prudence_kfree(block);
    EXPECT_EQ(order, LARGE_ORDER);
    EXPECT_EQ((__force unsigned int)(asked & (__GFP_RECLAIM | __GFP_HIGH)),
              (__force unsigned int)(gfp & (__GFP_RECLAIM | __GFP_HIGH)));
}

/* Pages beyond those needed are requested without reclaim and without touching reserves. */
void larger_slabs_cost_nobody_anything(void)
{
    gfp_t callers[] = {GFP_KERNEL, GFP_ATOMIC, GFP_NOIO, GFP_NOWAIT, GFP_KERNEL | __GFP_NOFAIL,
                       GFP_KERNEL | __GFP_MEMALLOC};
    struct event event = {.name = "mm_page_alloc"};
    unsigned int i;

    check_trace_callback_type_mm_page_alloc(see);
    if (!follow(&event, see))
        return;
    for (i = 0; i < ARRAY_SIZE(callers); i++)
        grow_more_than_needed(i % 2 ? 16 : PAGE_SIZE, callers[i]);
    grow_as_much_as_needed(GFP_KERNEL);
    grow_as_much_as_needed(GFP_ATOMIC);
    forget(&event, see);
}

static u8 *watched; /* NULL once its pages are freed */
static unsigned int untouched;

/* Called before the page allocator zeroes the pages. A block that cannot be freed at once is used
 * as a member of a list, in its first bytes. */
static void see_freed(void *unused, struct page *page, unsigned int order)
{
    u8 *freed = READ_ONCE(watched);

    if (!freed || page != virt_to_page(freed))
        return;
    untouched += freed[(PAGE_SIZE << order) - 1] == 0x5a;
    WRITE_ONCE(watched, NULL);
}

static void free_block(void (*give)(const void *block))
{
    unsigned int i;
    u8 *made = prudence_kmalloc(PAGE_SIZE << LARGE_ORDER, GFP_KERNEL);

    EXPECT(made != NULL);
    memset(made, 0x5a, PAGE_SIZE << LARGE_ORDER);
    WRITE_ONCE(watched, made);
    give(made);
    for (i = 0; i < 200 && READ_ONCE(watched); i++)
        msleep(50);
    EXPECT(!READ_ONCE(watched));
}

/* With init_on_free, too, and also after a grace period, when a node's lock is held. */
void blocks_are_zeroed_by_the_page_allocator_only(void)
{
    struct event event = {.name = "mm_page_free"};

    check_trace_callback_type_mm_page_free(see_freed);
    if (!follow(&event, see_freed))
        return;
    untouched = 0;
    free_block(prudence_kfree);
    free_block(prudence_kfree_deferred);
    EXPECT_EQ(untouched, 2);
    forget(&event, see_freed);
}
