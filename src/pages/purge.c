/* SPDX-License-Identifier: MIT */
/*
 * Giving dirty pages back to the system: taken out of circulation under pages_lock, given back without it, and put
 * back as clean ones. One thread at a time does so (purge_lock); a thread that finds another one at work goes on,
 * unless it would fail otherwise.
 */
#include "pages/page_source.h"

#define RUNS_AT_ONCE    64
#define REFUSED_NS      100000000 /* memory is locked: not tried again for so long */
#define CHUNK_PAGES_MIN 64        /* a system call is worth so many */

struct os_lock purge_lock = OS_LOCK_INIT(OS_RANK_GIVE_BACK);
static uint64_t refused_until; /* atomic */
static uint64_t given_ever;    /* bytes; written under the lock, read without (atomic) */

enum outcome { GONE, CLEAN, REFUSED };

static enum outcome run_goes(const struct leaving_run *run)
{
    if (run->whole && region_unmake(run->region))
        return GONE;
    return mapping_purge(run->region->base + run->start * OS_PAGE_SIZE, run->pages * OS_PAGE_SIZE)
               ? CLEAN
               : REFUSED;
}

/* Back into circulation, and into the books. Returns the bytes that went. */
static size_t run_comes_back(const struct leaving_run *run, enum outcome outcome)
{
    if (outcome != GONE) {
        if (run->whole && !region_add(run->region))
            return 0; /* another has its place, and there is no other: it stays out */
        run_return(run, outcome == CLEAN);
    }
    if (outcome == REFUSED) {
        working_set_dirtied(RUNS, (run->pages - run->dirty) * OS_PAGE_SIZE);
        return 0;
    }
    working_set_purged(RUNS, run->dirty * OS_PAGE_SIZE);
    return run->dirty * OS_PAGE_SIZE;
}

/* One batch of about `bytes`. Returns the bytes that went; 0: there was nothing, or all was refused. */
static size_t purge_batch(size_t bytes)
{
    struct leaving_run runs[RUNS_AT_ONCE];
    enum outcome outcomes[RUNS_AT_ONCE];
    size_t pages = clamp_size(bytes / OS_PAGE_SIZE, CHUNK_PAGES_MIN, UINT32_MAX), given = 0;
    unsigned count;

    os_lock_take(&pages_lock);
    count = runs_leave((unsigned)pages, runs, RUNS_AT_ONCE);
    os_lock_release(&pages_lock);
    for (unsigned i = 0; i < count; i++)
        outcomes[i] = run_goes(&runs[i]);
    os_lock_take(&pages_lock);
    for (unsigned i = 0; i < count; i++)
        given += run_comes_back(&runs[i], outcomes[i]);
    os_lock_release(&pages_lock);
    return given;
}

static size_t purge_runs(size_t bytes)
{
    size_t given = 0, more;

    while (given < bytes && (more = purge_batch(bytes - given)) > 0)
        given += more;
    return given;
}

/* The oldest free huge mapping. False: there is none, or it was refused. */
static bool purge_huge_mapping(size_t *given)
{
    struct huge_mapping *huge;
    size_t bytes;
    bool clean;

    os_lock_take(&pages_lock);
    huge = huge_mapping_take_oldest();
    os_lock_release(&pages_lock);
    if (!huge)
        return false;
    bytes = huge->bytes;
    if (huge_mapping_unmake(huge)) {
        os_lock_take(&pages_lock);
        working_set_purged(HUGE_MAPPINGS, bytes);
        os_lock_release(&pages_lock);
        *given += bytes;
        return true;
    }
    clean = mapping_purge(huge->base, bytes);
    os_lock_take(&pages_lock);
    if (clean) {
        working_set_purged(HUGE_MAPPINGS, bytes);
        huge->bytes = 0;
        *given += bytes;
    }
    huge_mapping_put(huge);
    os_lock_release(&pages_lock);
    return false;
}

static size_t purge_huge_mappings(size_t bytes)
{
    size_t given = 0;

    while (given < bytes && purge_huge_mapping(&given))
        ;
    return given;
}

static bool was_refused(void)
{
    uint64_t until = load_relaxed(&refused_until);

    return until && posix_clock_coarse_ns() < until;
}

/* `patient`: waits for its turn; otherwise leaves the work to the thread that is doing it. Returns the bytes that
 * went. */
size_t purge(const struct excess *excess, bool patient)
{
    size_t given;

    if (patient)
        os_lock_take(&purge_lock);
    else if (was_refused() || !os_lock_try(&purge_lock))
        return 0;
    given = purge_huge_mappings(excess->bytes[HUGE_MAPPINGS]);
    given += purge_runs(excess->bytes[RUNS]);
    store_relaxed(&given_ever, load_relaxed(&given_ever) + given);
    store_relaxed(&refused_until, given ? 0 : posix_clock_coarse_ns() + REFUSED_NS);
    os_lock_release(&purge_lock);
    return given;
}

/* A thread that has waited for the lock (purge_everything) sees what went before by its acquire. */
uint64_t purged_ever(void)
{
    return load_relaxed(&given_ever);
}

size_t purge_everything(void)
{
    static const struct excess everything = {{SIZE_MAX, SIZE_MAX}};
    size_t given = purge(&everything, true);

    os_lock_take(&pages_lock);
    working_set_trimmed();
    os_lock_release(&pages_lock);
    return given;
}
