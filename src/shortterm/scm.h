/* SPDX-License-Identifier: MIT */
/*
 * Private to scm/: the structures of a thread that takes part in short-term memory, and the
 * functions of each file.
 *
 *   page        descriptors of objects with one expiration date; some may last longer (stamps.h)
 *   page_list   all descriptors of one date, or all that have expired
 *   scm_clock   a time, and a ring of lists, one for each date that has not expired
 *   scm_thread  a thread's clocks, and the thread's expired descriptors
 *
 * Each file uses files on the lines above, and those before it on the same line (ADR 20).
 *
 *   settings, meta, registry            options; memory for scm/; the lock and the lists of threads
 *   places, expiry_counts, finalizers   tables behind handles; words of objects; finalizers
 *   owners, pages, clock                clocks that own stamps; pages of descriptors; rings
 *   handles, thread_state, stamps       clocks of programs; making threads; requeued descriptors
 *   ended, real_time                    lists of destroyed clocks; clocks that follow real time
 *   region_places, region_end           places behind handles of regions; ended regions
 *   expire                              processing of expired descriptors
 *   left                                lists of ended threads
 *   threads                             taking part, blocking, ending, fork
 *   clock_calls, regions                calls of programs for clocks and regions,
 *   refresh, tick, memory               for dates and time, for memory and statistics
 *
 * A thread's clocks and lists are private to the thread, so refreshing and ticking take no lock and
 * no atomic read-modify-write, except perhaps on the shared counts in shortterm/expiry_counts.h. A
 * scm_thread that has dates outlives its thread. It is then an orphan, in scm_orphans, and belongs
 * to the holder of scm_lock. The next thread that registers takes the oldest orphan as its own.
 * Until then each tick of any thread takes over a little of one (left.c). Counters have one writer
 * and are read by scm_get_mem_info.
 *
 * Invariants: every descriptor on a list of a clock or on an expired list stands for 1 in the
 * object's count. The descriptors of date d are in ring[d & mask], and d is in the list's first
 * page. A list has a mark exactly when it is not empty. On local, global and user clocks now <= d
 * <= now + mask; on a real-time clock an expired list may still be in the ring (real_time.c). A
 * page on a list has at least one descriptor that was not taken. While a thread has destroyed
 * clocks with dates, the thread's expired list is not empty.
 *
 * No call except eager ticks, scm_collect and scm_get_mem_info does work in proportion to the
 * number of clocks, dates or lists. Large work is done bit by bit (left.c, real_time.c), and
 * `counts.steps` counts the bits.
 */
#ifndef SHORTTERM_SCM_H
#define SHORTTERM_SCM_H

#include <errno.h>

#include <prudence/scm.h>

#include "base/list.h"
#include "heap/object.h"
#include "shortterm/expiry_counts.h"
#include "shortterm/marks.h"
#include "shortterm/meta.h"
#include "shortterm/places.h"
#include "shortterm/settings.h"
#include "shortterm/stamps.h"

/* Size of a page of descriptors. Another size can be given to measure it; 32 is one descriptor a
 * page, the list that the thesis compares pages with. */
#ifndef SCM_PAGE_BYTES
#define SCM_PAGE_BYTES 1024
#endif
#define PAGE_BYTES   ((size_t)SCM_PAGE_BYTES)
#define PAGE_OBJECTS ((PAGE_BYTES - 24) / sizeof(uint64_t))

/* A descriptor is an object's address, and whether it is the one behind the object's stamp
 * (stamps.h). */
#define BEHIND_STAMP (UINT64_C(1) << 63)

static inline void *object_of(uint64_t descriptor)
{
    return (void *)(uintptr_t)(descriptor & ~BEHIND_STAMP);
}

struct page {
    struct page *next;
    uint32_t count;
    uint32_t stamp; /* owner and date of the descriptors (stamps.h) */
    uint64_t date;  /* in the first page of a ring's list, the date of the list */
    uint64_t descriptors[PAGE_OBJECTS];
};
_Static_assert(sizeof(struct page) == PAGE_BYTES, "no byte is wasted");

struct page_list {
    struct page *first, *last; /* both NULL when empty (but see scm_thread.expired) */
    uint64_t before;           /* in pages before the last; unused in expired lists */
};

enum clock_kind { LOCAL_CLOCK, GLOBAL_CLOCK, USER_CLOCK, REAL_TIME_CLOCK };

struct scm_clock {
    uint64_t now;
    uint64_t mask;          /* lists - 1; a power of two less 1 */
    struct page_list *ring; /* NULL until the first date (mask is 0 then) */
    uint64_t *marks;        /* stored after the ring */
    uint32_t owner;         /* in stamps, or NO_OWNER; see stamps.h, also for `life` */
    uint64_t life;          /* 0 if the clock has had no owner */

    /* Used in clocks of scm_clock_create and scm_clock_create_realtime (handles.c). */
    enum clock_kind kind;
    struct scm_thread *thread; /* the owner; atomic, because other threads may read it */
    uint64_t handle;           /* given to the program; 0 after the end; atomic */
    uint64_t turn_and_place;   /* the last handle; atomic */
    uint64_t dates;            /* number of dates that have not expired */
    uint64_t local_then;       /* local time of the thread when it ended */
    struct list link;          /* in a list of a thread or of unused clocks */

    /* Real time (real_time.c). */
    uint64_t period; /* of one unit, in ns */
    uint64_t due;    /* end of the present unit, in ns */
    uint64_t behind; /* number of dates before `now` whose lists are not swept */
};

struct scm_counts {
    uint64_t dates; /* descriptors ever made, including the taken ones */
    uint64_t taken; /* descriptors ever processed, on pages that are gone (see scm_thread.begin) */
    uint64_t expired; /* descriptors ever expired */
    uint64_t became;  /* objects that got their first date */
    uint64_t ended;   /* objects whose last date was processed */
    uint64_t kept;    /* of these, not freed because of a finalizer, or not yet */
    int64_t pages;    /* descriptor pages now */
    uint64_t steps;   /* lists moved or swept and region pages freed, bit by bit */
    /* Live regions. This and the next count are meaningful only as sums over all threads. */
    int64_t regions;
    int64_t region_bytes; /* of pages of live regions, and of ended ones not yet freed */
};

struct scm_thread {
    struct scm_clock local, global;
    struct page_list expired; /* empty when `last` is NULL; `first` is `nothing` then */
    struct page *nothing;     /* NULL or &something_to_do, so that fast paths test one word */
    uint64_t begin;           /* descriptors taken from the first expired page; atomic */
    struct page *spare;       /* an empty page, or NULL */
    bool collecting;          /* a finalizer is running, and calls do not collect */
    bool blocked;
    bool ends;                 /* destructors of thread-specific data have begun */
    int32_t id, process;       /* of the thread, to find out whether it is gone */
    uint32_t more;             /* real-time clocks, ended regions or `left` exist, for ticks */
    uint64_t number;           /* owner in regions; new each time a thread begins to take part */
    uint64_t phase;            /* phase of global time of the last tick (gp_phases_tick) */
    struct list clocks;        /* clocks it made, except real-time clocks */
    struct list real;          /* real-time clocks, in the order of checks */
    struct list ended;         /* destroyed clocks; all dates have expired */
    struct list ended_regions; /* regions with pages to free (region_end.c) */
    struct list region_places; /* unused places */
    uint32_t region_place_count;
    struct list left; /* clocks with dates of ended threads, whose heir this is */
    struct scm_counts counts;
    struct list link;     /* in scm_threads or scm_orphans; scm_lock */
    struct list turns[2]; /* an orphan's links in the queues of left.c; scm_lock */
};

/* --- registry.c: all threads --- */
extern struct os_lock scm_lock;
extern struct list scm_threads;    /* threads that take part; scm_lock */
extern struct list scm_orphans;    /* without a thread; scm_lock */
extern struct list scm_abandoned;  /* not copied by fork; changed by fork only */
extern struct scm_counts scm_gone; /* counts of freed threads; scm_lock */
extern unsigned scm_ending;        /* threads in their destructors, or gone since; scm_lock */
bool registry_has_abandoned(uint64_t number);

/* --- finalizers.c: functions of the program that may keep an object --- */
bool finalizer_run(struct scm_thread *self, uint32_t *word, void *object);

/* --- owners.c: the clocks that own stamps --- */
bool owners_start(void);
extern uint32_t scm_owners;
void owner_attach_clock(struct scm_clock *clock);
void owner_detach_clock(struct scm_clock *clock);
void owner_begin_clock_life(struct scm_clock *clock);
void owner_stamp_page(struct page *page, uint32_t stamp);

/* --- pages.c: descriptors --- */
bool pages_start(void);
struct prudence_cache *pages_cache(void);
struct page *page_add(struct scm_thread *self, struct scm_clock *clock, uint64_t date);
void page_free(struct scm_thread *self, struct page *page);
void page_spare_free(struct scm_thread *thread);

/* Returns the page for the next descriptor of a date within the clock's reach, at the end of the
 * list. Returns NULL if there is no memory. */
static inline struct page *page_with_room(struct scm_thread *self, struct scm_clock *clock,
                                          uint64_t date)
{
    struct page *page = clock->ring[date & clock->mask].last;

    if (likely(page) && likely(page->count < PAGE_OBJECTS) &&
        likely(page->stamp == stamp_of(clock->owner, date)))
        return page;
    return page_add(self, clock, date);
}

static inline void page_put(struct scm_thread *self, struct scm_clock *clock, struct page *page,
                            uint64_t descriptor)
{
    page->descriptors[page->count] = descriptor;
    page->count++;
    clock->dates++;
    count_add(&self->counts.dates, 1);
}

/* --- clock.c: a ring of lists --- */
extern const char *const scm_clock_names[]; /* by kind, for tracers */
#define LISTS_PER_CALL 2 /* lists of a ring that a call moves, unless it does all */
bool clock_init(struct scm_clock *clock);
void clock_release(struct scm_clock *clock);
bool clock_reach(struct scm_clock *clock, uint64_t extension);
uint64_t clock_first(const struct scm_clock *clock, uint64_t from);
void clock_expire(struct scm_thread *self, struct scm_clock *clock, uint64_t place);
void clock_give(struct scm_thread *self, struct scm_clock *from, uint64_t place,
                struct scm_clock *to, uint64_t date);

/* Returns the number of descriptors on a list of a ring. */
static inline uint64_t list_dates(const struct page_list *list)
{
    return list->before + list->last->count;
}

/* Moves a list, which is not empty, to the expired descriptors. Takes constant time for any
 * length. */
static inline void list_expires(struct scm_thread *self, struct page_list *list)
{
    if (self->expired.last)
        self->expired.last->next = list->first;
    else
        self->expired.first = list->first;
    self->expired.last = list->last;
    *list = (struct page_list){.before = 0};
}

/* Counts dates that have expired by the clock, and informs tracers. */
static inline void count_expired(struct scm_thread *self, const struct scm_clock *clock,
                                 uint64_t dates)
{
    count_add(&self->counts.expired, dates);
    os_probe3(expire, clock, scm_clock_names[clock->kind], dates);
}

/* Advances by one unit of time. The descriptors dated `now` expire. */
static inline void clock_advance(struct scm_thread *self, struct scm_clock *clock)
{
    uint64_t place = clock->now & clock->mask;
    struct page_list *list = &clock->ring[place];

    clock->now++;
    if (unlikely(!(clock->now % STAMP_EPOCH)))
        owner_detach_clock(clock);
    if (list->first)
        clock_expire(self, clock, place);
}

static inline bool clock_is_empty(const struct scm_clock *clock)
{
    return !clock->ring || clock_first(clock, 0) > clock->mask;
}

/* --- handles.c: clocks that programs make --- */
struct scm_clock *clock_make(struct scm_thread *thread, enum clock_kind kind);
void clock_retire(struct scm_clock *clock);
void clock_unmake(struct scm_clock *clock);
void clock_unmake_locked(struct scm_clock *clock);
struct scm_clock *clock_of_handle(struct scm_clock *handle, bool *was);

/* --- thread_state.c: the structure of a thread --- */
struct scm_thread *thread_state_make(void);
void thread_state_free(struct scm_thread *thread);
void thread_state_watch(struct scm_thread *self);

/* --- stamps.c: descriptors that are queued again --- */
uint64_t stamps_follow(struct scm_thread *self, const struct page *page, uint64_t taken,
                       uint64_t most);
enum following { FOLLOWED, IS_OVER, NO_MEMORY };
enum following stamp_follow(struct scm_thread *self, const struct page *page, uint64_t descriptor);

/* Returns whether the object has a later date in its stamp than the descriptor's page. */
static inline bool lasts_longer(uint64_t descriptor, uint32_t stamp, const struct page *page)
{
    return (descriptor & BEHIND_STAMP) && stamp_lead(stamp, page->stamp) > 0;
}

/* --- ended.c: lists of destroyed clocks --- */
void clock_end(struct scm_thread *self, struct scm_clock *clock);
void ended_feed(struct scm_thread *self);

/* --- real_time.c: clocks that follow real time --- */
extern uint64_t (*scm_real_time)(void); /* in ns; replaced by tests */
void real_time_start(struct scm_thread *self, struct scm_clock *clock, uint64_t period);
void real_time_follow(struct scm_thread *self, struct scm_clock *clock, uint64_t ns,
                      uint64_t lists);
void real_time_look(struct scm_thread *self, bool at_all);
void real_time_glance(struct scm_thread *self);
bool real_time_make_room(struct scm_thread *self, struct scm_clock *clock, uint64_t units);
void real_time_leave(struct scm_clock *clock);
void real_time_left_step(struct scm_thread *self, bool all);
bool real_time_left(void);
bool real_time_merges(void);

/* --- expire.c: processing of expired descriptors --- */
#define TAKEN_PER_CALL 4 /* descriptors that a call processes, unless ticks do */
void expired_take(struct scm_thread *thread, uint64_t count);

static inline bool something_waits(const struct scm_thread *thread)
{
    return thread->expired.first != NULL;
}

/* Processes a few expired descriptors. */
static inline void collect_some(struct scm_thread *thread)
{
    if (something_waits(thread))
        expired_take(thread, TAKEN_PER_CALL);
}

/* With lazy collection, leaves the descriptors that the tick expired to later calls, unless others
 * were `waiting` before the tick. So the tick reads nothing that is no longer in the processor's
 * caches. */
static inline void collect_after_tick(struct scm_thread *thread, bool waiting)
{
    if (load_relaxed(&scm_eager))
        expired_take(thread, UINT64_MAX);
    else if (waiting)
        expired_take(thread, TAKEN_PER_CALL);
}

/* --- left.c: lists of ended threads --- */
extern uint32_t scm_left;  /* work of threads that ended or are ending; atomic */
#define LEFT_FOR_TICKS  1u /* orphans, or real-time clocks */
#define LEFT_FOR_MERGES 2u /* real-time clocks that wait to be merged */
#define LEFT_BY_ENDING  4u /* threads in their destructors, or gone since */
void left_note(void);
void left_keep_or_free(struct scm_thread *orphan);
struct scm_thread *left_take_orphan(void);
void left_step_if_any(struct scm_thread *self);
void left_retire_clocks(struct scm_thread *thread);
bool left_step(struct scm_thread *self);
void left_steps(struct scm_thread *self);
void left_merge_real_time(struct scm_thread *self);
void left_take(struct scm_thread *self, enum clock_kind kind);
void left_take_expired(struct scm_thread *self);

/* --- threads.c: coming and going. Callers that find scm_self NULL call scm_thread_enter, which
 * registers the thread. It returns NULL with *error set (and reported) if the thread is blocked or
 * there is no memory. scm_thread_leave comes after the call. scm_thread_refuse_absent is for calls
 * that have nothing to do for such a thread; it reports that and returns the error. --- */
struct scm_thread *scm_thread_enter(const char *what, int *error);
void scm_thread_leave(void);
int scm_thread_refuse_absent(const char *what);
void scm_threads_reap(void);
void scm_threads_reap_ending(void);
struct scm_thread *scm_thread_enter_to_stay(const char *what);
extern struct prudence_domain *scm_phases; /* global time */

/* State of this thread while it takes part and is not blocked, otherwise NULL. */
extern HIDDEN __thread struct scm_thread *scm_self __attribute__((tls_model("initial-exec")));

/* --- clock_calls.c --- */
int clock_call_check(struct scm_clock *handle, const char *what, struct scm_thread **self,
                     struct scm_clock **clock);

#endif /* SHORTTERM_SCM_H */
