/* SPDX-License-Identifier: MIT */
/* Pages to be closed or opened by a thread that holds nothing (see page_jobs.c). */
#ifndef DEBUG_PAGE_JOBS_H
#define DEBUG_PAGE_JOBS_H

#include "base/list.h"
#include "os/os.h"

/* Part of a record of its user's, which stays until `done` is called. */
struct page_job {
    struct list link;
    const void *thread; /* at work on it; NULL: none. The rest is constant */
    /* Changes mappings, with nothing held; may be called again, for a forked child. False: the system refuses. */
    bool (*call)(struct page_job *job);
    /* What became of it. Carried, so no fork comes in between; changes no mapping. The job may be queued again, or freed. */
    void (*done)(struct page_job *job, bool called);
};

/* Any thread, with any locks but those of rank OS_RANK_DEBUG and above. It is done before this thread has let go of all that it
 * holds now, as a rule; or else by another. */
void page_job_queue(struct page_job *job, bool (*call)(struct page_job *job),
                    void (*done)(struct page_job *job, bool called));

void page_jobs_fork_prepare(void);
void page_jobs_fork_child(bool whole);
void page_jobs_fork_done(void);

#endif /* DEBUG_PAGE_JOBS_H */
