/* SPDX-License-Identifier: MIT */
/* Closes or opens pages by a thread that holds nothing (see page_jobs.c). */
#ifndef GUARD_PAGE_JOBS_H
#define GUARD_PAGE_JOBS_H

#include "base/list.h"
#include "fork_part.h"
#include "os/os.h"

/* A job, part of the user's record, which must stay until `done` is called. */
struct page_job {
    struct list link;
    const void *thread; /* thread at work on the job, or NULL; the rest is constant */
    /* Changes mappings, with nothing held; may run again, for a forked child. Returns false if the
     * system refuses. */
    bool (*call)(struct page_job *job);
    /* Receives the result of `call`. Carried, so no fork comes in between; changes no mapping. May
     * queue or free the job. */
    void (*done)(struct page_job *job, bool called);
};

/* Queues a job. Any thread may call this, with any locks below rank OS_RANK_DEBUG. As a rule this
 * thread runs the job before releasing all that it holds now; otherwise another thread does. */
void page_job_queue(struct page_job *job, bool (*call)(struct page_job *job),
                    void (*done)(struct page_job *job, bool called));

extern const struct fork_part page_jobs_fork_part;

#endif /* GUARD_PAGE_JOBS_H */
