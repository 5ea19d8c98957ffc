/* SPDX-License-Identifier: MIT */
/*
 * Private to the page source (described in os/os.h), which calls the system through
 * os/posix/mapping.c. Each file has one concept:
 *
 *   page_index.c    address -> region or huge mapping, in constant time
 *   region.c        runs of up to 32 MiB, cut from regions of at most 64 MiB
 *   arena.c         the regions of a node, and the search for a free run
 *   window.c        regions that belong to one cache each
 *   huge_mapping.c  separate mappings for larger blocks, and the list of the free ones
 *   run.c           runs with their accounting; a run that outgrows its region
 *   advice.c        advice of the program about pages, which must not reach their next use
 *   advice_undo.c   undoing it when they are freed
 *   working_set.c   accounting, and how many free pages will be wanted again
 *   purge.c         giving the other free pages back to the system
 *   zero.c          making used memory zero
 *   pages.c         the functions of os/os.h
 *
 * Pages are counted in units of OS_PAGE_SIZE. But every run, every huge mapping and every purged
 * range consists of whole pages of the system (os_page_size), in place and length.
 *
 * `pages_lock` protects all of this and is held during no system call, because the call may go to a
 * function that the program has put in libc's place, and that allocates (os_lock.h,
 * os_holds_nothing). So a thread takes the pages that it makes a call for out of circulation under
 * the lock, makes the call without the lock, and then enters the result. Pages that are out belong
 * to that thread alone; other threads, and the same thread in an allocation inside the call, find
 * other pages or map more. Threads that find no page at the same time map a region each, and no
 * thread maps a second one before searching again.
 */
#ifndef PAGES_PAGE_SOURCE_H
#define PAGES_PAGE_SOURCE_H

#include "base/bits.h"
#include "base/list.h"
#include "mapping.h"
#include "os/os.h"
#include "posix.h"

#define REGION_SIZE  ((size_t)64 << 20)
#define REGION_PAGES ((unsigned)(REGION_SIZE / OS_PAGE_SIZE))
#define RUN_MAX      (REGION_SIZE / 2)
#define RUN_ORDERS   15 /* orders (powers of two, in pages) of a run in a region */

/* Size of the first region of a node. While the node's regions have less than REGION_SMALL
 * together, each further region doubles their sum, if that is enough for the run, because a process
 * that locks its memory later has to pay for whole regions. */
#define REGION_FIRST ((size_t)1 << 20)
#define REGION_SMALL ((size_t)8 << 20)
extern size_t region_small; /* REGION_SMALL, or a test's value; 0 if no region is small */
/* The smallest region worth making when the system refuses larger ones. */
#define REGION_LEAST ((size_t)128 << 10)

_Static_assert(REGION_PAGES >> (RUN_ORDERS - 1) == 1, "the last order is a whole region");
_Static_assert(REGION_PAGES <= UINT16_MAX, "a number of pages of a region fits 16 bits");

/* Alignment of regions and huge mappings, a huge page, so that no two begin in the same one. */
#define HUGE_MAPPING_ALIGNMENT ((size_t)2 << 20)

/* Returns whether the range is whole pages of the system. */
static inline bool are_whole(const void *pages, size_t bytes)
{
    return (((uintptr_t)pages | bytes) & (os_page_size - 1)) == 0;
}

extern struct os_lock pages_lock; /* working_set.c */

/* --- page_index.c. The region or huge mapping at an address, if any. --- */
struct place {
    struct region *region; /* at most one of the two is set */
    struct huge_mapping *huge;
};
/* Makes room, so that setting cannot fail. */
bool page_index_prepare(const void *base, size_t bytes);
void page_index_set_region(const struct region *region, bool there);
void page_index_set_huge_mapping(const struct huge_mapping *huge, bool there);
struct place page_index_find(const void *pages);

/* --- region.c --- */
struct region {
    char *base;
    unsigned pages;      /* pages beyond this number count as used */
    unsigned node, slot; /* place in the node's arena */
    bool window;         /* runs and free addresses are for one cache */
    bool ends;           /* an unwanted window, unmapped when no run is leaving */
    bool holed;          /* pages are missing in this child of fork (advice_undo.c); not unmapped */
    unsigned leaving;    /* number of runs on their way to the system */
    unsigned free_pages; /* unused pages, clean or dirty */
    unsigned dirty_pages;
    unsigned longest;      /* upper bound of the longest free run */
    struct advice *advice; /* of the program, about pages in use or freed; or NULL (advice.c) */
    uint16_t first[RUN_ORDERS]; /* no free run of 2^i pages or more begins before first[i] */
    uint64_t used[REGION_PAGES / BITS_PER_WORD];  /* used or out of circulation */
    uint64_t dirty[REGION_PAGES / BITS_PER_WORD]; /* unused, but perhaps backed by memory */
};

/* Takes a run and counts the dirty pages in *dirty. Returns NULL if no region of the node has
 * room. */
void *region_take(unsigned node, unsigned pages, unsigned step, unsigned *dirty);
void region_free(struct region *region, unsigned start, unsigned pages);
/* Takes the `pages` pages from `start` on, which follow a run, if they are free. */
bool region_extend(struct region *region, unsigned start, unsigned pages, unsigned *dirty);

/* Take one run, or all pages, of a window's region. region_take_all() is called when none is used,
 * and returns the number of dirty pages. */
void *region_take_in(struct region *region, unsigned pages, unsigned step, unsigned *dirty);
unsigned region_take_all(struct region *region);
/* Adds `pages` opened pages to a window. */
void region_opened(struct region *region, unsigned pages);
/* Remove and unmap a window's region that has no used page and no leaving run;
 * region_unmake_window() without the lock. */
void region_remove_window(struct region *region);
void region_unmake_window(struct region *region);

/* Makes a region that has room for an aligned run of `bytes`, as large as is sensible and the
 * system allows. All pages are free, and the region is not yet added. Called without the lock. */
struct region *region_make(unsigned node, size_t bytes, size_t alignment);
/* Returns whether a region of `bytes`, or a smaller one, was refused a moment ago. */
bool region_was_refused(size_t bytes);
bool region_add(struct region *region); /* false if the arena has no room (arena_prepare) */
void region_remove(struct region *region);
bool region_unmake(struct region *region); /* of a removed region; no lock; false if refused */

/* A run out of circulation, on the way back to the system. */
struct leaving_run {
    struct region *region;
    unsigned start, pages;
    unsigned dirty; /* number of dirty pages among them */
    bool whole;     /* the run is the whole region, which was removed */
};
/* Takes dirty runs, of about `pages` dirty pages, out of circulation, from the last regions
 * first. */
unsigned region_runs_leave(unsigned pages, struct leaving_run *runs, unsigned count);
/* Takes the node's last region before *slot that has no dirty page and only free ones out of
 * circulation, and stores the region's slot in *slot. Begin with ARENA_FULL. Returns false if there
 * is none. */
bool region_empty_leaves(unsigned node, unsigned *slot, struct leaving_run *run);
/* Puts a run back. The region has been added again if the run was whole. */
void region_run_return(const struct leaving_run *run, bool clean);
/* Frees a run whose memory is gone already. */
void region_free_clean(struct region *region, unsigned start, unsigned pages);

/* --- window.c --- */
extern unsigned windows_max;

/* --- arena.c; all but arena_prepare and arena_bytes under pages_lock --- */
#define ARENA_FULL UINT32_MAX
bool arena_prepare(unsigned node); /* makes room for a region; false if there can be none */
size_t arena_bytes(unsigned node); /* of all regions except windows; a hint */
bool arena_add(struct region *region);
void arena_remove(struct region *region);
void arena_note_longest(const struct region *region); /* called after region->longest changed */
void arena_note_dirty(
    const struct region *region); /* called after dirty_pages became or ceased to be 0 */
/* Finds the first region from *slot on that may have a free run of `pages`, and stores the region's
 * slot in *slot. Returns NULL if there is none. */
struct region *arena_find(unsigned node, unsigned *slot, unsigned pages);
/* Finds the last region before *slot, or the last one that has dirty pages, and stores the region's
 * slot in *slot. Begin with ARENA_FULL. */
struct region *arena_find_before(unsigned node, unsigned *slot, bool dirty);
/* Returns the first region from *slot on that has dirty pages and room for a run. */
struct region *arena_find_dirty_from(unsigned node, unsigned *slot, unsigned pages);

/* --- huge_mapping.c --- */
struct huge_mapping {
    struct list link; /* in the bin, while free */
    struct list age;  /* in the list of all, oldest first, while free */
    char *base;
    /* Bytes of the block, or of the start that may be dirty while the mapping is free. */
    size_t bytes;
    size_t mapped; /* >= bytes; the part between is clean */
    unsigned node;
    bool advised; /* the program gave advice about it; never in a bin */
};

/* Called without the lock. huge_mapping_reuse() takes a free one, or returns NULL if none fits;
 * _fresh() makes one; _alloc() does either. */
struct huge_mapping *huge_mapping_reuse(size_t bytes, size_t alignment, unsigned node, bool *clean);
struct huge_mapping *huge_mapping_fresh(size_t bytes, size_t alignment, unsigned node);
void *huge_mapping_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean);
/* Changes the size of a used huge mapping, which may move when it grows. */
bool huge_mapping_grow(struct huge_mapping *huge, size_t bytes, size_t wanted, void *owner);
void huge_mapping_shrink(struct huge_mapping *huge, size_t bytes, size_t wanted, void *owner);
/* For a run's memory that was moved to the start of a fresh one (run.c): makes it one mapping of
 * the system; or drops it, when the first `bytes` may be another mapping's; or frees it. */
void huge_mapping_weld(struct huge_mapping *huge, size_t bytes);
void huge_mapping_drop(struct huge_mapping *huge, size_t bytes);
void huge_mapping_give_up(struct huge_mapping *huge);

/* Under pages_lock: the number of free ones. Frees a used one; takes out the oldest free one; puts
 * one that was taken out back. */
extern unsigned huge_mappings_free;
void huge_mapping_free(struct huge_mapping *huge);
struct huge_mapping *huge_mapping_take_oldest(void);
void huge_mapping_put(struct huge_mapping *huge);
bool huge_mapping_unmake(struct huge_mapping *huge); /* a free one taken out; false if refused */

/* --- advice.c; all under pages_lock, except advice_free() --- */
/* Bits in units of OS_PAGE_SIZE. Pages in `owed` count as used. */
struct advice {
    struct list link; /* in advice_owing.runs, while there are owed pages */
    struct region *region;
    unsigned owed_pages;
    /* Pages with advice, and freed pages that wait for the undoing. */
    uint64_t given[REGION_PAGES / BITS_PER_WORD], owed[REGION_PAGES / BITS_PER_WORD];
};
extern struct advice_owing {
    struct list runs, huge; /* struct advice; huge mappings, by `age` */
    unsigned kinds;         /* all kinds of advice that were ever noted */
} advice_owing;

bool advice_given(const struct region *region, unsigned start, unsigned pages);
/* Keeps freed pages out of circulation until their advice is undone. Returns false if they have
 * none. */
bool advice_owe(struct region *region, unsigned start, unsigned pages);
void advice_owe_huge(struct huge_mapping *huge);
void advice_free(struct region *region); /* called before the region's structure is freed */

/* --- advice_undo.c; under pages_lock --- */
void advice_undo_request(void);               /* called when pages may have become owed */
void advice_undo_drop(struct region *region); /* of a window that ends: it will be unmapped */
void advice_undo_fork_child(bool whole);

/* --- working_set.c; all under pages_lock unless noted --- */
enum page_kind { RUNS, HUGE_MAPPINGS, PAGE_KINDS };

void working_set_took(enum page_kind kind, size_t bytes, size_t dirty);
void working_set_freed(enum page_kind kind, size_t bytes);
void working_set_purged(enum page_kind kind, size_t bytes);
void working_set_trimmed(void);
void working_set_dirtied(enum page_kind kind, size_t bytes);
bool working_set_fits(size_t bytes); /* whether used, dirty, requested and `bytes` fit the limit */
bool working_set_ask(size_t bytes);  /* also counts them as requested */
void working_set_answered(size_t bytes);
/* Counts the dirty bytes of a free huge mapping held by a thread that has released the lock. */
void working_set_in_hand(size_t bytes, bool taken);
bool working_set_is_in_hand(void); /* whether any are, of this thread or another */
void working_set_fork_child(void);
bool working_set_is_due(void); /* whether to check for excess; without the lock */

/* Bytes to purge, by kind. working_set_excess() returns false if there are none, or not yet enough
 * to be worth a system call. */
struct excess {
    size_t bytes[PAGE_KINDS];
};
bool working_set_excess(struct excess *excess, bool all_of_it);
void working_set_stats(struct os_pages_stats *stats);

/* --- purge.c; without pages_lock. A thread that holds something purges nothing until later. --- */
size_t purge(const struct excess *excess);
size_t purge_everything(void);
uint64_t purged_ever(void); /* bytes purged or unmapped since the process began */
void purge_fork_child(bool whole);

/* --- zero.c --- */

extern uint64_t (*pages_zero_clock)(void); /* replaced by tests */

#endif /* PAGES_PAGE_SOURCE_H */
