// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Frees memory later on PREEMPT_RT. There the locks of the kernel's own allocators sleep, so
 * nothing can be allocated from or freed to them with interrupts or preemption off. Allocations
 * fail then (os_may_lock). Freed memory is put on a list, linked through the memory itself, and a
 * worker frees it. An irq_work wakes the worker, because the caller may hold locks of the
 * scheduler.
 */
#include "os_kernel.h"

struct waiting {
    struct llist_node link;
    size_t bytes;
    bool pages; /* false for metadata */
};

static LLIST_HEAD(waiting);
static struct irq_work soon;

static void give_back(struct work_struct *work)
{
    struct llist_node *link = llist_del_all(&waiting);

    (void)work;
    while (link) {
        struct waiting *item = llist_entry(link, struct waiting, link);

        link = link->next;
        if (item->pages)
            os_pages_free(item, item->bytes);
        else
            os_meta_free(item, item->bytes);
    }
}

static DECLARE_WORK(work, give_back);

static void call_worker(struct irq_work *unused)
{
    (void)unused;
    schedule_work(&work);
}

void os_free_later(void *memory, size_t bytes, bool pages)
{
    struct waiting *item = memory;

    item->bytes = bytes;
    item->pages = pages;
    llist_add(&item->link, &waiting);
    irq_work_queue(&soon);
}

void os_deferred_work_start(void)
{
    os_irq_work_init(&soon, call_worker);
}

/* Called when nothing is freed any more. */
void os_deferred_work_stop(void)
{
    irq_work_sync(&soon);
    flush_work(&work);
}
