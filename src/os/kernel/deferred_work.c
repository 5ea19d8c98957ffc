// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * PREEMPT_RT: the locks of the kernel's own allocators sleep there, so that with interrupts or preemption
 * off nothing may be had of them, and nothing given back. Allocations that need them fail then
 * (os_may_lock); what is to be given back waits, in its own memory, for a worker. That is woken from an
 * interrupt of its own, since the caller that gives back may hold locks of the scheduler.
 */
#include "os_kernel.h"

struct waiting {
    struct llist_node link;
    size_t bytes;
    bool pages; /* or metadata */
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

/* Nobody gives anything back any more. */
void os_deferred_work_stop(void)
{
    irq_work_sync(&soon);
    flush_work(&work);
}
