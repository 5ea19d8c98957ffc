/* SPDX-License-Identifier: MIT */
/*
 * Purges dirty pages. A thread takes them out of circulation under pages_lock, purges them without
 * the lock, and puts them back as clean ones. One thread at a time does so (`purging`), to keep
 * order. A thread that finds another at work goes on, unless it would fail otherwise; then it
 * purges too, and the two take different pages.
 *
 * A thread that would fail even so waits for those that purge, until runs or a huge mapping come
 * back or go. It does not wait for long, because the system call may go to a function of the
 * program that waits for any thread. So the bytes of huge mappings in hand are counted, and the
 * runs out of circulation are noted in batches:
 *
 *   - Fork puts back the runs that other threads had out. The child cannot know whether the pages
 *     have gone, so they count as dirty. But regions that were being unmapped, and huge mappings,
 *     are lost in the child, like everything else other threads have in hand, because the
 *     addresses may belong to another mapping already. (The system unmaps before or after it
 *     copies, so memory is lost only if a thread was between the two.)
 *   - A window that ends stays until a thread returns the last of its runs and unmaps the window.
 *
 * A thread that holds something, or that allocates or frees during a mapping call, makes no call,
 * and notes the excess, which is purged when the thread holds nothing.
 */
#include "pages/page_source.h"

/* Policy: how are free pages purged? */
#define RUNS_AT_ONCE    64        /* runs; out of the lists at a time */
#define BATCHES         8         /* threads; more purge no runs at the same time */
#define REFUSED_NS      100000000 /* ns; pause after all was refused, as for locked memory */
#define CHUNK_PAGES_MIN 64        /* pages; least that are worth a system call */
#define WAIT_NS         100000    /* ns; one wait for the pages that other threads have out */
#define WAITS           1000      /* waits; most of them */

/* Runs that one thread has out of circulation. */
struct leaving_batch {
    const void *thread; /* owner (see me()), or NULL if free; under pages_lock */
    unsigned count;
    struct leaving_run runs[RUNS_AT_ONCE];
};

static struct leaving_batch batches[BATCHES];
static struct excess owed;     /* found by threads that held something; under pages_lock */
static uint32_t purging;       /* atomic */
static uint64_t refused_until; /* atomic */
static uint64_t given_ever;    /* bytes of memory, and of address space without any; atomic */

enum outcome { GONE, CLEAN, REFUSED };

/* Returns an address that differs between threads. */
static const void *me(void)
{
    return &os_busy;
}

static enum outcome run_goes(const struct leaving_run *run)
{
    if (run->whole && region_unmake(run->region))
        return GONE;
    if (!run->dirty)
        return CLEAN;
    return mapping_purge(run->region->base + run->start * OS_PAGE_SIZE, run->pages * OS_PAGE_SIZE)
               ? CLEAN
               : REFUSED;
}

/* Called under the lock, when the pages are in circulation again or the addresses are free, so a
 * thread that finds no other with pages out has the sum. Release: so does one that only reads the
 * sum (purged_ever). */
static void count_given(size_t bytes)
{
    __atomic_fetch_add(&given_ever, bytes, __ATOMIC_RELEASE);
}

/* Puts a run back into circulation and counts it. Returns the bytes that went. */
static size_t run_comes_back(const struct leaving_run *run, enum outcome outcome)
{
    if (outcome != GONE) {
        if (run->whole && !region_add(run->region))
            /* Another region has its slot and no slot is free, so the region stays out. */
            return 0;
        region_run_return(run, outcome == CLEAN);
    }
    if (outcome == REFUSED) {
        working_set_dirtied(RUNS, (run->pages - run->dirty) * OS_PAGE_SIZE);
        return 0;
    }
    working_set_purged(RUNS, run->dirty * OS_PAGE_SIZE);
    return run->dirty * OS_PAGE_SIZE;
}

/* Removes and returns a window that only waited for these runs. Call again until this returns
 * NULL. */
static struct region *ended_window(const struct leaving_batch *batch, const enum outcome *outcomes)
{
    for (unsigned i = 0; i < batch->count; i++) {
        struct region *region = batch->runs[i].region;

        if (outcomes[i] != GONE && region->ends && !region->leaving) {
            region->ends = false; /* only once */
            region_remove_window(region);
            return region;
        }
    }
    return NULL;
}

/* Claims a batch, or returns NULL if all are in use. Called under the lock. */
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

static struct leaving_batch *purge_take_out(size_t bytes)
{
    size_t pages = clamp_size(bytes / OS_PAGE_SIZE, CHUNK_PAGES_MIN, UINT32_MAX);
    struct leaving_batch *batch;

    os_lock_take(&pages_lock);
    batch = batch_begin();
    if (batch)
        batch->count = region_runs_leave((unsigned)pages, batch->runs, RUNS_AT_ONCE);
    os_lock_release(&pages_lock);
    return batch;
}

static size_t put_back(struct leaving_batch *batch, const enum outcome *outcomes)
{
    struct region *ended[RUNS_AT_ONCE + 1];
    unsigned windows = 0;
    size_t given = 0;

    os_lock_take(&pages_lock);
    for (unsigned i = 0; i < batch->count; i++) {
        size_t went = run_comes_back(&batch->runs[i], outcomes[i]);

        given += went;
        count_given(outcomes[i] == GONE ? batch->runs[i].pages * OS_PAGE_SIZE : went);
    }
    while ((ended[windows] = ended_window(batch, outcomes)))
        windows++;
    batch->thread = NULL;
    os_lock_release(&pages_lock);
    while (windows)
        region_unmake_window(ended[--windows]);
    return given;
}

/* Returns the bytes that went, 0 if there is no batch, no run in it, or all were refused. */
static size_t purge_batch(struct leaving_batch *batch)
{
    enum outcome outcomes[RUNS_AT_ONCE];

    for (unsigned i = 0; batch && i < batch->count; i++)
        outcomes[i] = run_goes(&batch->runs[i]);
    return batch ? put_back(batch, outcomes) : 0;
}

static size_t purge_runs(size_t bytes)
{
    size_t given = 0, more;

    while (given < bytes && (more = purge_batch(purge_take_out(bytes - given))) > 0)
        given += more;
    return given;
}

/* Unmaps the node's last region before *slot of which all pages are free and clean. Returns false
 * if there is none. */
static bool purge_empty_region(unsigned node, unsigned *slot)
{
    struct leaving_batch *batch;
    bool found = false;

    os_lock_take(&pages_lock);
    batch = batch_begin();
    if (batch) {
        found = region_empty_leaves(node, slot, &batch->runs[0]);
        batch->count = found;
    }
    os_lock_release(&pages_lock);
    purge_batch(batch);
    return found;
}

/* Unmaps regions without any memory, because the process may lack address space. Goes through the
 * slots once, because other threads may free more without end. */
static void purge_empty_regions(void)
{
    for (unsigned node = 0; node < os_node_count(); node++) {
        unsigned slot = ARENA_FULL;

        while (purge_empty_region(node, &slot))
            ;
    }
}

/* Takes the oldest free huge mapping in hand. A fork's child loses it. */
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

/* Counts a huge mapping of `bytes` dirty bytes, of which `gone` were purged, out of hand, and
 * `given` bytes as given. Puts the mapping back, unless it was unmapped (NULL). */
static void huge_mapping_put_back(struct huge_mapping *huge, size_t bytes, size_t gone,
                                  size_t given)
{
    os_lock_take(&pages_lock);
    working_set_in_hand(bytes, false);
    working_set_purged(HUGE_MAPPINGS, gone);
    if (huge) {
        huge->bytes -= gone;
        huge_mapping_put(huge);
    }
    count_given(given);
    os_lock_release(&pages_lock);
    os_hands_empty();
}

/* Unmaps the oldest free huge mapping. If that is refused, because it would split a mapping while
 * the process has as many as it may have, purges it. Returns false if there is none or that is
 * refused, too, as for locked memory. */
static bool purge_huge_mapping(size_t *given)
{
    struct huge_mapping *huge = huge_mapping_take_out();
    size_t bytes, mapped, gone;

    if (!huge)
        return false;
    bytes = huge->bytes;
    mapped = huge->mapped;
    if (huge_mapping_unmake(huge)) {
        huge_mapping_put_back(NULL, bytes, bytes, mapped);
        *given += bytes;
        return true;
    }
    gone = mapping_purge(huge->base, bytes) ? bytes : 0;
    huge_mapping_put_back(huge, bytes, gone, gone);
    *given += gone;
    return gone == bytes;
}

/* Purges `bytes`; or `all`, also those without dirty bytes, because the process may lack address
 * space. None is purged twice, and those that are freed in that time are skipped, because there may
 * be no end to them. */
static size_t purge_huge_mappings(size_t bytes, bool all)
{
    size_t given = 0;
    unsigned count;

    os_lock_take(&pages_lock);
    count = huge_mappings_free;
    os_lock_release(&pages_lock);
    while (count-- && (all || given < bytes) && purge_huge_mapping(&given))
        ;
    return given;
}

static bool was_refused(void)
{
    uint64_t until = load_relaxed(&refused_until);

    return until && posix_clock_coarse_ns() < until;
}

/* `all`: huge mappings and empty regions go whatever the excess is. */
static size_t purge_give_back(const struct excess *excess, bool all)
{
    size_t given = purge_huge_mappings(excess->bytes[HUGE_MAPPINGS], all);

    given += purge_runs(excess->bytes[RUNS]);
    if (all)
        purge_empty_regions();
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

/* Notes an excess for later. The latest one includes all earlier ones. */
static void owe(const struct excess *excess)
{
    os_lock_take(&pages_lock);
    owed = *excess;
    os_lock_release(&pages_lock);
    os_later(OS_LATER_PURGE, purge_owed);
}

/* Returns the bytes that went. Leaves the work to a thread that is purging, or until this thread
 * holds nothing. */
size_t purge(const struct excess *excess)
{
    uint32_t no = 0;
    size_t given = 0;

    if (!may_give_back())
        owe(excess);
    else if (!was_refused() && compare_exchange(&purging, &no, 1u)) {
        given = purge_give_back(excess, false);
        store_release(&purging, 0u);
    }
    return given;
}

uint64_t purged_ever(void)
{
    return load_acquire(&given_ever);
}

/* Returns whether other threads have runs or huge mappings out. With full hands this thread itself
 * may have the huge mapping, because a signal handler has interrupted its purge. */
static bool others_give_back(void)
{
    bool others;

    os_lock_take(&pages_lock);
    others = !os_hands && working_set_is_in_hand();
    for (unsigned i = 0; i < BATCHES; i++)
        others |= batches[i].thread && batches[i].thread != me();
    os_lock_release(&pages_lock);
    return others;
}

/* Waits until other threads have purged something or have nothing out. Gives up soon, because they
 * may wait for this thread, and at once between fork's handlers, when they cannot go on. */
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
    /* Pages freed during the calls are skipped, because there may be no end to them. */
    size_t kept = os_pages_kept(), given;
    const struct excess everything = {{kept, kept}};

    if (!may_give_back()) {
        owe(&everything);
        return 0;
    }
    given = purge_give_back(&everything, true);
    if (!given)
        wait_for_others();
    os_lock_take(&pages_lock);
    working_set_trimmed();
    os_lock_release(&pages_lock);
    return given;
}

/* Puts back the runs of other threads, which do not exist in the child. The runs that this thread
 * has out stay out. */
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
