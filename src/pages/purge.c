/* SPDX-License-Identifier: MIT */
/*
 * Giving dirty pages back to the system: taken out of circulation under pages_lock, given back without it, and put
 * back as clean ones. One thread at a time does so for the sake of order (`purging`); a thread that finds another one at work
 * goes on, unless it would fail otherwise, and then gives back, too: what both take is apart.
 *
 * No thread waits for one that is at it, except one that would fail, for a short time: the function that the system is asked
 * by may be the program's own, and wait for any thread. So what is out of circulation is noted in batches:
 *
 *   - fork puts back what other threads had out. In the child nobody knows whether the pages have gone, so they count as dirty
 *     ones. But regions that were being unmapped, and huge mappings, are lost there, as what other threads have in hand
 *     always is: their addresses may be another mapping's already. (The system unmaps before it copies, or after. So memory
 *     is lost only where a thread stood between the two.)
 *   - a window that ends stays until the last of its runs is back, and goes by the thread that brings that one.
 *
 * A thread that holds something, or allocates or frees in the call of another mapping, makes no call, but notes what it owes,
 * and that is given back when it holds nothing.
 */
#include "pages/page_source.h"

#define RUNS_AT_ONCE    64
#define BATCHES         8         /* more threads at a time than that give nothing back */
#define REFUSED_NS      100000000 /* memory is locked: not tried again for so long */
#define CHUNK_PAGES_MIN 64        /* a system call is worth so many */
#define WAIT_NS         100000    /* for what others have out, so long at a time ... */
#define WAITS           1000      /* ... and so often */

/* Runs that one thread has out of circulation. */
struct leaving_batch {
    const void *thread; /* whose (see me()); NULL: free; pages_lock */
    unsigned count;
    struct leaving_run runs[RUNS_AT_ONCE];
};

static struct leaving_batch batches[BATCHES];
static struct excess owed;     /* found by threads that held something; pages_lock */
static uint32_t purging;       /* atomic */
static uint64_t refused_until; /* atomic */
static uint64_t given_ever;    /* bytes; atomic */

enum outcome { GONE, CLEAN, REFUSED };

/* Another address in each thread. */
static const void *me(void)
{
    return &os_busy;
}

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

/* A window that has only waited for these runs; NULL: none, or there may be more (call again). */
static struct region *ended_window(const struct leaving_batch *batch, const enum outcome *outcomes)
{
    for (unsigned i = 0; i < batch->count; i++) {
        struct region *region = batch->runs[i].region;

        if (outcomes[i] != GONE && region->ends && !region->leaving) {
            region->ends = false; /* once */
            space_remove(region);
            return region;
        }
    }
    return NULL;
}

/* Under the lock. NULL: all are in use. */
static struct leaving_batch *batch_begin(void)
{
    for (unsigned i = 0; i < BATCHES; i++) {
        if (batches[i].thread)
            continue;
        batches[i].thread = me();
        return &batches[i];
    }
    return NULL;
}

static struct leaving_batch *take_out(size_t bytes)
{
    size_t pages = clamp_size(bytes / OS_PAGE_SIZE, CHUNK_PAGES_MIN, UINT32_MAX);
    struct leaving_batch *batch;

    os_lock_take(&pages_lock);
    batch = batch_begin();
    if (batch)
        batch->count = runs_leave((unsigned)pages, batch->runs, RUNS_AT_ONCE);
    os_lock_release(&pages_lock);
    return batch;
}

static size_t put_back(struct leaving_batch *batch, const enum outcome *outcomes)
{
    struct region *ended[RUNS_AT_ONCE + 1];
    unsigned windows = 0;
    size_t given = 0;

    os_lock_take(&pages_lock);
    for (unsigned i = 0; i < batch->count; i++)
        given += run_comes_back(&batch->runs[i], outcomes[i]);
    while ((ended[windows] = ended_window(batch, outcomes)))
        windows++;
    batch->thread = NULL;
    os_lock_release(&pages_lock);
    while (windows)
        space_unmake(ended[--windows]);
    return given;
}

/* One batch of about `bytes`. Returns the bytes that went; 0: there was nothing, or all was refused. */
static size_t purge_batch(size_t bytes)
{
    enum outcome outcomes[RUNS_AT_ONCE];
    struct leaving_batch *batch = take_out(bytes);

    for (unsigned i = 0; batch && i < batch->count; i++)
        outcomes[i] = run_goes(&batch->runs[i]);
    return batch ? put_back(batch, outcomes) : 0;
}

static size_t purge_runs(size_t bytes)
{
    size_t given = 0, more;

    while (given < bytes && (more = purge_batch(bytes - given)) > 0)
        given += more;
    return given;
}

/* The oldest free huge mapping, in hand: fork's child has none. */
static struct huge_mapping *huge_mapping_take_out(void)
{
    struct huge_mapping *huge;

    os_lock_take(&pages_lock);
    huge = huge_mapping_take_oldest();
    if (huge) {
        os_hands_full();
        working_set_in_hand(huge->bytes, true);
    }
    os_lock_release(&pages_lock);
    return huge;
}

/* `bytes` of it are not dirty any more. NULL: nor is anything else. */
static void huge_mapping_put_back(struct huge_mapping *huge, size_t bytes, size_t gone)
{
    os_lock_take(&pages_lock);
    working_set_in_hand(bytes, false);
    working_set_purged(HUGE_MAPPINGS, gone);
    if (huge) {
        huge->bytes -= gone;
        huge_mapping_put(huge);
    }
    os_lock_release(&pages_lock);
    os_hands_empty();
}

/* The oldest free huge mapping. False: there is none, or it was refused. */
static bool purge_huge_mapping(size_t *given)
{
    struct huge_mapping *huge = huge_mapping_take_out();
    size_t bytes, gone;

    if (!huge)
        return false;
    bytes = huge->bytes;
    if (huge_mapping_unmake(huge)) {
        huge_mapping_put_back(NULL, bytes, bytes);
        *given += bytes;
        return true;
    }
    gone = mapping_purge(huge->base, bytes) ? bytes : 0;
    huge_mapping_put_back(huge, bytes, gone);
    *given += gone;
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

/* Release: a thread that sees the bytes counted (purged_ever) finds the pages in circulation. */
static size_t give_back(const struct excess *excess)
{
    size_t given = purge_huge_mappings(excess->bytes[HUGE_MAPPINGS]);

    given += purge_runs(excess->bytes[RUNS]);
    __atomic_fetch_add(&given_ever, given, __ATOMIC_RELEASE);
    store_relaxed(&refused_until, given ? 0 : posix_clock_coarse_ns() + REFUSED_NS);
    return given;
}

static bool may_give_back(void)
{
    return os_holds_nothing() && !os_in_mapping_call;
}

static void purge_owed(void)
{
    struct excess excess;

    os_lock_take(&pages_lock);
    excess = owed;
    owed = (struct excess){{0}};
    os_lock_release(&pages_lock);
    purge(&excess);
}

/* What the last thread found is all that there is. */
static void owe(const struct excess *excess)
{
    os_lock_take(&pages_lock);
    owed = *excess;
    os_lock_release(&pages_lock);
    os_later(OS_LATER_PURGE, purge_owed);
}

/* Returns the bytes that went; leaves the work to the thread that is doing it, or to itself when it holds nothing. */
size_t purge(const struct excess *excess)
{
    uint32_t no = 0;
    size_t given = 0;

    if (!may_give_back())
        owe(excess);
    else if (!was_refused() && compare_exchange(&purging, &no, 1u)) {
        given = give_back(excess);
        store_release(&purging, 0u);
    }
    return given;
}

uint64_t purged_ever(void)
{
    return load_acquire(&given_ever);
}

static bool others_give_back(void)
{
    bool others = false;

    os_lock_take(&pages_lock);
    for (unsigned i = 0; i < BATCHES; i++)
        others |= batches[i].thread && batches[i].thread != me();
    os_lock_release(&pages_lock);
    return others;
}

/* Until others have given something back, or have nothing out. Not for long, because they may wait for this thread; and not
 * between fork's handlers, when they cannot go on. */
static void wait_for_others(void)
{
    uint64_t given = purged_ever();

    for (unsigned i = 0; i < WAITS && !os_lock_forking && given == purged_ever(); i++) {
        if (!others_give_back())
            return;
        os_sleep_ns(WAIT_NS);
    }
}

size_t purge_everything(void)
{
    size_t kept = os_pages_kept(), given; /* not what is freed in the calls: there may be no end */
    const struct excess everything = {{kept, kept}};

    if (!may_give_back()) {
        owe(&everything);
        return 0;
    }
    given = give_back(&everything);
    if (!given)
        wait_for_others();
    os_lock_take(&pages_lock);
    working_set_trimmed();
    os_lock_release(&pages_lock);
    return given;
}

/* The thread that was at it may not be here. What this thread has out stays so. */
void purge_fork_child(bool whole)
{
    store_relaxed(&purging, 0u);
    for (unsigned i = 0; whole && i < BATCHES; i++) {
        struct leaving_batch *batch = &batches[i];

        if (!batch->thread || batch->thread == me())
            continue;
        for (unsigned k = 0; k < batch->count; k++)
            run_comes_back(&batch->runs[k], batch->runs[k].whole ? GONE : REFUSED);
        batch->thread = NULL;
    }
}
