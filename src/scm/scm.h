/* SPDX-License-Identifier: MIT */
/*
 * Private to scm/: what a thread that takes part in short-term memory is made of, and what each file offers.
 *
 *   page        descriptors: objects that share an expiration date. One may last longer (stamps.h)
 *   page_list   all descriptors of one date; or all that have expired
 *   scm_clock   its time, and a ring of lists: one for each date that has not expired
 *   scm_thread  a thread's clocks, and its expired descriptors
 *
 * The files. Each uses those of the lines above its own, and those before it in its line (ADR 63).
 *
 *   settings, meta, registry            options; memory for these books; the lock and the lists of threads
 *   places, expiry_counts, finalizers   tables behind handles; an object's words; functions that may keep an object
 *   owners, pages, clock                whose stamps are; pages of descriptors; a ring of lists
 *   handles, thread_state, stamps       clocks of programs; making and freeing a thread; descriptors that are queued again
 *   ended, real_time                    what destroyed clocks leave; clocks that follow real time
 *   region_places, region_end           places behind handles of regions; what regions leave
 *   expire                              what becomes of an object whose date is over
 *   left                                what threads leave
 *   threads                             taking part, blocking, ending, fork
 *   clock_calls, regions                the calls of programs: for clocks and regions,
 *   refresh, tick, memory               for dates and time, for memory and statistics
 *
 * A thread's clocks and lists are its own, so refreshing and ticking take no lock and no atomic
 * read-modify-write; the counts in scm/expiry_counts.h, which threads share, may. A scm_thread that has dates
 * outlives its thread: it is an orphan then, in scm_orphans, and belongs to the holder of scm_lock. The
 * next thread that registers takes the oldest orphan as its own; until then each tick of any thread takes
 * over a little of one (left.c). Counters have one writer and are read by scm_get_mem_info.
 *
 * Invariants: every descriptor on a list of a clock or on an expired list stands for 1 in its object's
 * count. The descriptors of date d are in ring[d & mask], and d is in the list's first page. A list has
 * a mark exactly when it is not empty. On local, global and user clocks now <= d <= now + mask; on a
 * real-time clock a list may have expired and be in its place still (real_time.c). A page on a list has at
 * least one descriptor that was not taken. While a thread has clocks that were destroyed and have dates,
 * its expired list is not empty.
 *
 * No call does work in proportion to the clocks, dates or lists that there are, but eager ticks, scm_collect
 * and scm_get_mem_info: what is much is done bit by bit (left.c, real_time.c); `counts.steps` says how many
 * bits were done.
 */
#ifndef SCM_SCM_H
#define SCM_SCM_H

#include <errno.h>

#include <prudence/scm.h>

#include "base/list.h"
#include "heap/object.h"
#include "scm/expiry_counts.h"
#include "scm/marks.h"
#include "scm/meta.h"
#include "scm/places.h"
#include "scm/settings.h"
#include "scm/stamps.h"

/* A page of descriptors. Another size can be given to measure it: 32 is one descriptor a page, the list that the thesis
 * compares pages with. */
#ifndef SCM_PAGE_BYTES
#define SCM_PAGE_BYTES 1024
#endif
#define PAGE_BYTES   ((size_t)SCM_PAGE_BYTES)
#define PAGE_OBJECTS ((PAGE_BYTES - 24) / sizeof(uint64_t))

/* A descriptor is an object's address, and whether it is the one behind the object's stamp (stamps.h). */
#define BEHIND_STAMP (UINT64_C(1) << 63)

static inline void *object_of(uint64_t descriptor)
{
    return (void *)(uintptr_t)(descriptor & ~BEHIND_STAMP);
}

struct page {
    struct page *next;
    uint32_t count;
    uint32_t stamp; /* whose descriptors these are, and of which date (stamps.h) */
    uint64_t date;  /* of the first page of a list in a ring: of all the list */
    uint64_t descriptors[PAGE_OBJECTS];
};
_Static_assert(sizeof(struct page) == PAGE_BYTES, "no byte is wasted");

struct page_list {
    struct page *first, *last; /* both NULL when empty (but see scm_thread.expired) */
    uint64_t before;           /* descriptors of the pages before the last; not of expired lists */
};

enum clock_kind { LOCAL_CLOCK, GLOBAL_CLOCK, USER_CLOCK, REAL_TIME_CLOCK };

struct scm_clock {
    uint64_t now;
    uint64_t mask;          /* lists - 1; a power of two less 1 */
    struct page_list *ring; /* NULL until the first date (mask is 0 then) */
    uint64_t *marks;        /* behind the ring */
    uint32_t owner;         /* in stamps, or NO_OWNER; with `life`: stamps.h */
    uint64_t life;          /* 0: it has had no owner */

    /* Those that were made by scm_clock_create and its kin (handles.c). */
    enum clock_kind kind;
    struct scm_thread *thread; /* whose it is; other threads may look: atomic */
    uint64_t handle;         /* what the program calls it; 0 when it is no clock any more; atomic */
    uint64_t turn_and_place; /* the last handle; atomic */
    uint64_t dates;          /* that have not expired */
    uint64_t local_then;     /* its thread has ended: local time of its thread then */
    struct list link;        /* in a list of a thread, or of those to be used again */

    /* Real time (real_time.c). */
    uint64_t period; /* ns; of one unit */
    uint64_t due;    /* ns; when time goes on */
    uint64_t behind; /* lists of so many dates before `now` may be in the ring still */
};

struct scm_counts {
    uint64_t dates; /* descriptors ever made; those taken are below */
    uint64_t taken; /* descriptors ever processed, on pages that are gone (see scm_thread.begin) */
    uint64_t expired; /* descriptors ever expired */
    uint64_t became;  /* objects that got their first date */
    uint64_t ended;   /* objects whose last date was processed */
    uint64_t kept;    /* of these, not freed: their finalizer said so, or has not returned */
    int64_t pages;    /* descriptor pages now */
    uint64_t
        steps; /* lists moved, or looked at, and pages of regions freed, by work that is done bit by bit */
    int64_t regions; /* that have not ended; this and the next count for all threads together */
    int64_t region_bytes; /* of their pages, and of those of ended regions that wait */
};

struct scm_thread {
    struct scm_clock local, global;
    struct page_list expired; /* empty when `last` is NULL; `first` is `nothing` then */
    struct page *nothing; /* NULL, or the address of something_to_do: so fast paths test one word */
    uint64_t begin;       /* descriptors of the first expired page that are taken; atomic */
    struct page *spare;   /* an empty one, or NULL */
    bool collecting;      /* a finalizer is running: what it calls does not collect */
    bool blocked;
    bool ends;           /* its destructors of thread-specific data have begun */
    int32_t id, process; /* the thread's, to see whether it is gone */
    uint32_t more; /* ticks have more to do: it has real-time clocks, ended regions, or `left` */
    uint64_t
        number; /* no other thread has had it: owner of regions. A new one whenever a thread begins to take part */
    uint64_t phase;     /* of global time in which the thread has ticked last (gp_phases_tick) */
    struct list clocks; /* that it made; not those of real time */
    struct list real;   /* its real-time clocks, in the order in which they are looked at */
    struct list ended;  /* clocks that were destroyed: all their dates have expired */
    struct list ended_regions; /* with pages that are to be freed (region_end.c) */
    struct list region_places; /* unused ones */
    uint32_t region_place_count;
    struct list left; /* clocks with dates of a thread that has ended, and whose heir this one is */
    struct scm_counts counts;
    struct list link; /* in scm_threads or scm_orphans; scm_lock */
    struct list
        turns[2]; /* an orphan's, in the queues of local and of global ticks (left.c); scm_lock */
};

/* --- registry.c: all threads --- */
extern struct os_lock scm_lock;
extern struct list scm_threads;    /* of threads that take part; scm_lock */
extern struct list scm_orphans;    /* without a thread; scm_lock */
extern struct list scm_abandoned;  /* of threads that fork has not copied; changed by fork only */
extern struct scm_counts scm_gone; /* of those that left nothing; scm_lock */
extern unsigned scm_ending;        /* threads in their destructors, or gone since; scm_lock */
bool scm_is_abandoned(uint64_t number);

/* --- finalizers.c: functions of the program that may keep an object --- */
bool finalize(struct scm_thread *self, uint32_t *word, void *object);

/* --- owners.c: which clock a stamp is of --- */
bool owners_start(void);
extern uint32_t scm_owners;
void clock_take_owner(struct scm_clock *clock);
void clock_drop_owner(struct scm_clock *clock);
void clock_begin_life(struct scm_clock *clock);
void page_set_stamp(struct page *page, uint32_t stamp);

/* --- pages.c: descriptors --- */
bool pages_start(void);
struct prudence_cache *pages_cache(void);
struct page *page_add(struct scm_thread *self, struct scm_clock *clock, uint64_t date);
void page_free(struct scm_thread *self, struct page *page);
void page_spare_free(struct scm_thread *thread);

/* Where the next descriptor of a date goes, which the clock's ring reaches: the end of its list. NULL: there is no
 * memory. */
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
extern const char *const scm_clock_names[]; /* of each kind, for tracers */
#define LISTS_PER_CALL 2 /* lists of a ring that a call moves, unless it does all */
bool clock_init(struct scm_clock *clock);
void clock_release(struct scm_clock *clock);
bool clock_reach(struct scm_clock *clock, uint64_t extension);
uint64_t clock_first(const struct scm_clock *clock, uint64_t from);
void clock_expire(struct scm_thread *self, struct scm_clock *clock, uint64_t place);
void clock_give(struct scm_thread *self, struct scm_clock *from, uint64_t place,
                struct scm_clock *to, uint64_t date);

/* Descriptors on a list of a ring. */
static inline uint64_t list_dates(const struct page_list *list)
{
    return list->before + list->last->count;
}

/* What is on the list has expired; it may not be empty. Constant time, whatever is on it. */
static inline void list_expires(struct scm_thread *self, struct page_list *list)
{
    if (self->expired.last)
        self->expired.last->next = list->first;
    else
        self->expired.first = list->first;
    self->expired.last = list->last;
    *list = (struct page_list){.before = 0};
}

/* Counts dates that have expired by the clock, and tells tracers. */
static inline void count_expired(struct scm_thread *self, const struct scm_clock *clock,
                                 uint64_t dates)
{
    count_add(&self->counts.expired, dates);
    os_probe3(expire, clock, scm_clock_names[clock->kind], dates);
}

/* One unit of time: what is dated `now` expires. */
static inline void clock_advance(struct scm_thread *self, struct scm_clock *clock)
{
    uint64_t place = clock->now & clock->mask;
    struct page_list *list = &clock->ring[place];

    clock->now++;
    if (unlikely(!(clock->now % STAMP_EPOCH)))
        clock_drop_owner(clock);
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

/* --- thread_state.c: what a thread is made of --- */
struct scm_thread *thread_make(void);
void thread_free(struct scm_thread *thread);
void thread_watch(struct scm_thread *self);

/* --- stamps.c: descriptors that are queued again --- */
uint64_t stamps_follow(struct scm_thread *self, const struct page *page, uint64_t taken,
                       uint64_t most);
enum following { FOLLOWED, IS_OVER, NO_MEMORY };
enum following stamp_follow(struct scm_thread *self, const struct page *page, uint64_t descriptor);

/* True: by its stamp the object has a date that is later than the descriptor's page. */
static inline bool lasts_longer(uint64_t descriptor, uint32_t stamp, const struct page *page)
{
    return (descriptor & BEHIND_STAMP) && stamp_lead(stamp, page->stamp) > 0;
}

/* --- ended.c: what destroyed clocks leave --- */
void clock_end(struct scm_thread *self, struct scm_clock *clock);
void ended_feed(struct scm_thread *self);

/* --- real_time.c: clocks that follow real time --- */
extern uint64_t (*scm_real_time)(void); /* ns; tests have their own */
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

/* --- expire.c: what becomes of an object whose date is over --- */
#define TAKEN_PER_CALL 4 /* descriptors that a call processes, unless ticks do */
void expired_take(struct scm_thread *thread, uint64_t count);

static inline bool something_waits(const struct scm_thread *thread)
{
    return thread->expired.first != NULL;
}

/* A few of what has expired. */
static inline void collect_some(struct scm_thread *thread)
{
    if (something_waits(thread))
        expired_take(thread, TAKEN_PER_CALL);
}

/* Lazily, what the tick has expired is left to the calls after it, unless other descriptors wait already: so it looks
 * at nothing that is no longer in the processor's caches. `waiting`: as it was before the tick. */
static inline void collect_after_tick(struct scm_thread *thread, bool waiting)
{
    if (load_relaxed(&scm_eager))
        expired_take(thread, UINT64_MAX);
    else if (waiting)
        expired_take(thread, TAKEN_PER_CALL);
}

/* --- left.c: what threads leave --- */
extern uint32_t scm_left;  /* what ended threads have left for others; atomic */
#define LEFT_FOR_TICKS  1u /* orphans, or something by real time */
#define LEFT_FOR_MERGES 2u /* real-time clocks that wait to be merged */
#define LEFT_BY_ENDING  4u /* threads in their destructors, or gone since */
void left_note(void);
void orphan_keep_or_free(struct scm_thread *orphan);
struct scm_thread *orphan_take(void);
void left_step_if_any(struct scm_thread *self);
void clocks_leave(struct scm_thread *thread);
bool left_step(struct scm_thread *self);
void left_steps(struct scm_thread *self);
void real_time_merge(struct scm_thread *self);
void left_take(struct scm_thread *self, enum clock_kind kind);
void left_take_expired(struct scm_thread *self);

/* --- threads.c: coming and going. scm_enter is for callers that find scm_self NULL: the thread's, newly
 * registered; NULL with *error set (and reported) when it is blocked, or there is no memory; scm_leave
 * comes after the call. scm_refuse_absent is for calls that have nothing to do then: reports, and returns
 * the error. --- */
struct scm_thread *scm_enter(const char *what, int *error);
void scm_leave(void);
int scm_refuse_absent(const char *what);
void scm_reap(void);
void scm_reap_ending(void);
struct scm_thread *scm_enter_to_stay(const char *what);
extern struct prudence_domain *scm_phases; /* global time */
void scm_fork_prepare(void);
void scm_fork_child(bool whole);
void scm_fork_done(void);

/* This thread's, while it takes part and is not blocked; NULL else. */
extern HIDDEN __thread struct scm_thread *scm_self __attribute__((tls_model("initial-exec")));

/* --- clock_calls.c --- */
int clock_check(struct scm_clock *handle, const char *what, struct scm_thread **self,
                struct scm_clock **clock);

#endif /* SCM_SCM_H */
