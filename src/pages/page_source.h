/* SPDX-License-Identifier: MIT */
/*
 * Private to the page source (os/os.h says what it is for), which asks the system by os/posix/mapping.c. One file a
 * concept:
 *
 *   page_index.c    address -> region or huge mapping, in constant time
 *   region.c        runs: up to 32 MiB, cut from regions of 64 MiB at most
 *   arena.c         the regions of a node; which of them has a free run
 *   window.c        regions of which one cache has all
 *   huge_mapping.c  own mappings, for what is larger; the freed ones
 *   working_set.c   accounting; how much of what is free will be wanted again
 *   purge.c         the rest goes back to the system
 *   pages.c         the functions of os/os.h
 *
 * Pages are counted in units of OS_PAGE_SIZE. But every run and every huge mapping is whole pages of the system
 * (os_page_size), in place and length, and so is what is purged.
 *
 * One lock. `pages_lock` guards all of this and is held for no system call: the system's answer may come from a function
 * that the program has put in libc's place, and that allocates (os_lock.h, os_holds_nothing). So a thread takes what it makes
 * a call for out of circulation under the lock, makes the call without it, and then enters what has become of it. What is
 * out is nobody else's; other threads, and the same one in an allocation inside the call, find other pages or map more.
 * Threads that find no page at the same time map a region each, and no thread maps a second one before it has looked again.
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
#define RUN_ORDERS   15 /* powers of two, of pages, that a run in a region can have */

/* The first region of a node. As long as the node's regions have less than REGION_SMALL together, each further one
 * doubles their sum, if that is enough for the run: a process that locks its memory later has to pay for all of it. */
#define REGION_FIRST ((size_t)1 << 20)
#define REGION_SMALL ((size_t)8 << 20)
extern size_t region_small; /* that, or what a test says: 0: no region is small */
/* Where the system refuses a region: the smallest that is worth one. */
#define REGION_LEAST ((size_t)128 << 10)

_Static_assert(REGION_PAGES >> (RUN_ORDERS - 1) == 1, "the last order is a whole region");

/* Where regions and huge mappings begin: multiples of a huge page. So no two begin in the same one. */
#define HUGE_MAPPING_ALIGNMENT ((size_t)2 << 20)

/* Whole pages of the system. */
static inline bool are_whole(const void *pages, size_t bytes)
{
    return (((uintptr_t)pages | bytes) & (os_page_size - 1)) == 0;
}

extern struct os_lock pages_lock; /* working_set.c */

/* --- page_index.c. What stands at an address: a region, a huge mapping, or nothing. --- */
struct place {
    struct region *region; /* at most one of both */
    struct huge_mapping *huge;
};
bool index_prepare(const void *base, size_t bytes); /* room; afterwards setting cannot fail */
void index_set_region(const struct region *region, bool there);
void index_set_huge_mapping(const struct huge_mapping *huge, bool there);
struct place index_find(const void *pages);

/* --- region.c --- */
struct region {
    char *base;
    unsigned pages;      /* those beyond count as used */
    unsigned node, slot; /* its place in its node's arena */
    bool window;      /* its runs are one cache's, and so are its addresses while they are free */
    bool ends;        /* a window that is not wanted any more: it goes when no run is leaving */
    unsigned leaving; /* runs of it that are on their way to the system */
    unsigned free_pages; /* not used: clean or dirty */
    unsigned dirty_pages;
    unsigned longest;           /* no free run is longer; an upper bound */
    uint16_t first[RUN_ORDERS]; /* no free run of 2^i pages or more begins before first[i] */
    uint64_t used[REGION_PAGES / BITS_PER_WORD];  /* or out of circulation */
    uint64_t dirty[REGION_PAGES / BITS_PER_WORD]; /* not used, but perhaps backed by memory */
};

/* Takes a run; NULL when no region of the node has room. *dirty: how many of its pages are dirty. */
void *run_take(unsigned node, unsigned pages, unsigned step, unsigned *dirty);
void run_free(struct region *region, unsigned start, unsigned pages);
/* The run's next `pages` pages, if they are free. */
bool run_extend(struct region *region, unsigned start, unsigned pages, unsigned *dirty);

/* The same in one region, of a window. And for all of its runs, none of which is used: how many pages were dirty. */
void *run_take_in(struct region *region, unsigned pages, unsigned step, unsigned *dirty);
unsigned run_take_all(struct region *region);
/* So many more pages of a window are there. */
void region_opened(struct region *region, unsigned pages);
/* A window's region of which no page is used and no run is leaving goes; the second without the lock. */
void space_remove(struct region *region);
void space_unmake(struct region *region);

/* Without the lock. A region that has room for an aligned run of `bytes`, as large as is sensible and the system
 * allows; all pages free, not yet added. */
struct region *region_make(unsigned node, size_t bytes, size_t alignment);
bool region_add(struct region *region); /* false: its arena has no room (arena_prepare) */
void region_remove(struct region *region);
bool region_unmake(struct region *region); /* removed before; without the lock; false: refused */

/* A run out of circulation, on its way back to the system. */
struct leaving_run {
    struct region *region;
    unsigned start, pages;
    unsigned dirty; /* pages of them */
    bool whole;     /* the region itself, removed */
};
/* Takes dirty runs, of about `pages` dirty pages, out of circulation: of the last regions first. */
unsigned runs_leave(unsigned pages, struct leaving_run *runs, unsigned count);
/* None of them is whole any more. */
void run_return(const struct leaving_run *run, bool clean);
/* Frees a run whose memory is gone already. */
void run_free_clean(struct region *region, unsigned start, unsigned pages);

/* --- pages.c --- */
bool region_append_made(struct region *region); /* without the lock; false: its arena has no room */
void run_count(unsigned pages, unsigned dirty); /* taken; under the lock, as the next */
size_t unchecked_take(void);                    /* bytes to check for, without the lock */

/* --- window.c --- */
extern unsigned windows_max;

/* --- arena.c; under pages_lock but arena_prepare and arena_bytes --- */
#define ARENA_FULL UINT32_MAX
bool arena_prepare(unsigned node); /* room for one more region; false: no memory, or too many */
size_t arena_bytes(unsigned node); /* of all regions; a hint */
bool arena_add(struct region *region);
void arena_remove(struct region *region);
void arena_note_longest(const struct region *region); /* region->longest has changed */
void arena_note_dirty(
    const struct region *region); /* region->dirty_pages became 0, or no longer is */
/* The first region from *slot on that may have a free run of `pages`, with its slot; NULL: none. */
struct region *arena_find(unsigned node, unsigned *slot, unsigned pages);
/* The last region before *slot that has dirty pages, with its slot. Begin with ARENA_FULL. */
struct region *arena_find_dirty(unsigned node, unsigned *slot);

/* --- huge_mapping.c --- */
struct huge_mapping {
    struct list link; /* free: in its bin */
    struct list age;  /* free: in the list of all, oldest first */
    char *base;
    size_t bytes;  /* used: those of the block; free: so many, at the start, may be dirty */
    size_t mapped; /* >= bytes; what is between is clean */
    unsigned node;
};

/* A free huge mapping for `bytes`, taken out; NULL: none fits. It may be dirty beyond `bytes`. */
struct huge_mapping *huge_mapping_take(size_t bytes, size_t alignment, unsigned node);
struct huge_mapping *huge_mapping_take_smaller(size_t bytes,
                                               unsigned node); /* the largest worth growing */
struct huge_mapping *huge_mapping_take_oldest(void);
void huge_mapping_put(struct huge_mapping *huge);

/* Without the lock. */
struct huge_mapping *huge_mapping_make(size_t bytes, size_t alignment, unsigned node);
bool huge_mapping_unmake(struct huge_mapping *huge); /* not in the index; false: refused */
bool huge_mapping_cut(struct huge_mapping *huge,
                      size_t bytes); /* what is beyond becomes clean, or goes */
size_t huge_mapping_reserve_for(size_t bytes);
bool huge_mapping_reserve(struct huge_mapping *huge,
                          size_t bytes); /* in place: mapped >= bytes and a reserve */
bool huge_mapping_move(struct huge_mapping *huge, size_t bytes, size_t reserve, void *owner,
                       size_t owned);
void huge_mapping_lose(struct huge_mapping *huge,
                       size_t bytes); /* its first bytes may be no longer its own */

/* --- working_set.c; all under pages_lock --- */
enum page_kind { RUNS, HUGE_MAPPINGS, PAGE_KINDS };

void working_set_took(enum page_kind kind, size_t bytes, size_t dirty);
void working_set_freed(enum page_kind kind, size_t bytes);
void working_set_purged(enum page_kind kind, size_t bytes);
void working_set_trimmed(void);
void working_set_dirtied(enum page_kind kind, size_t bytes);
bool working_set_fits(size_t bytes); /* under the option limit, with what is dirty or asked for */
bool working_set_ask(size_t bytes);  /* fits; the system will be asked for them without the lock */
void working_set_answered(size_t bytes);
/* Dirty bytes of a free huge mapping, by a thread that has released the lock. */
void working_set_in_hand(size_t bytes, bool taken);
void working_set_fork_child(void);
bool working_set_is_due(void); /* the next look at the excess; without the lock */

/* What is to be given back, by kind; false: nothing, or not yet enough to be worth it. */
struct excess {
    size_t bytes[PAGE_KINDS];
};
bool working_set_excess(struct excess *excess, bool all_of_it);
void working_set_stats(struct os_pages_stats *stats);
struct pages_words;
void working_set_words(struct pages_words *words);

/* --- purge.c; without pages_lock. A thread that holds something gives nothing back: it is asked for later. --- */
size_t purge(const struct excess *excess);
size_t purge_everything(void);
uint64_t purged_ever(void); /* how many bytes have gone since the process began */
void purge_fork_child(bool whole);

#endif /* PAGES_PAGE_SOURCE_H */
