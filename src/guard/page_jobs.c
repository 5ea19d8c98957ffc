/* SPDX-License-Identifier: MIT */
/*
 * Closes or opens pages when their objects are freed. A slab goes while a thread carries the slab,
 * perhaps with locks held, but the functions that change mappings may be the program's own
 * (os_lock.h, os_holds_nothing). So each job goes into a queue, and runs when the thread holds
 * nothing, before the free returns.
 *
 * A job stays in the queue while a thread works on the job, marked with the thread. In a forked
 * child the marks of other threads are cleared, and their jobs run (again). Leaving the queue and
 * updating the user's books is one carried step, so fork sees both or neither.
 *
 * Locks: one (OS_RANK_DEBUG) for the queue; no function is called with the lock held.
 */
#include "guard/page_jobs.h"

#include "fork_part.h"

static struct os_lock page_jobs_lock = OS_LOCK_INIT(OS_RANK_DEBUG);
static struct list jobs = {&jobs, &jobs};

/* Returns an address that differs between threads. */
static const void *page_jobs_me(void)
{
    return &os_busy;
}

/* Marks and returns the oldest job that no thread works on, or NULL. */
static struct page_job *begin_one(void)
{
    struct page_job *found = NULL;
    struct list *item;

    os_lock_take(&page_jobs_lock);
    list_for_each(item, &jobs)
    {
        struct page_job *job = list_entry(item, struct page_job, link);

        if (job->thread)
            continue;
        job->thread = page_jobs_me();
        found = job;
        break;
    }
    os_lock_release(&page_jobs_lock);
    return found;
}

static void page_jobs_end(struct page_job *job, bool called)
{
    os_in_flight_begin();
    os_lock_take(&page_jobs_lock);
    list_remove(&job->link);
    os_lock_release(&page_jobs_lock);
    job->done(job, called);
    os_in_flight_end();
}

static void page_jobs_work(void)
{
    struct page_job *job;

    while ((job = begin_one()))
        page_jobs_end(job, job->call(job));
}

void page_job_queue(struct page_job *job, bool (*call)(struct page_job *job),
                    void (*done)(struct page_job *job, bool called))
{
    job->thread = NULL;
    job->call = call;
    job->done = done;
    os_lock_take(&page_jobs_lock);
    list_append(&jobs, &job->link);
    os_lock_release(&page_jobs_lock);
    os_later(OS_LATER_PAGE_JOBS, page_jobs_work);
}

static void page_jobs_fork_prepare(void)
{
    os_lock_take_for_fork(&page_jobs_lock);
}

static void page_jobs_fork_child(bool whole)
{
    struct list *item;

    if (!whole)
        return;
    list_for_each(item, &jobs)
    {
        struct page_job *job = list_entry(item, struct page_job, link);

        if (job->thread != page_jobs_me())
            job->thread = NULL;
    }
}

static void page_jobs_fork_done(void)
{
    os_lock_release_from_fork(&page_jobs_lock);
}

const struct fork_part page_jobs_fork_part = {.order = FORK_PAGE_JOBS,
                                              .name = "pages to close or open",
                                              .prepare = page_jobs_fork_prepare,
                                              .child = page_jobs_fork_child,
                                              .done = page_jobs_fork_done};
