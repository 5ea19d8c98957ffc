/* SPDX-License-Identifier: MIT */
/*
 * Slots of hazard pointers: records of seven, which threads claim at their first slot and when all
 * their slots are in use, and give back at their end. Chunks of records are never unmapped, because
 * threads that search for names hold no lock.
 *
 * Only the thread of a record and its handlers change `free` and `movable`, each time by one
 * instruction (prudence_hazard_add_bits_), because a handler may take back slots. Another thread
 * that releases a movable slot sets the slot's bit in `returned`; the record's thread takes the
 * slot back when it has no free one. A record whose thread has ended while movable slots were out
 * is an orphan, and becomes free with the last of them. A thread that saw them all back may sleep
 * while the record is freed, claimed and an orphan again; so each orphan has a number of its own.
 *
 * A thread that ends gives back the records of which it holds no slot. Another stays the thread's,
 * because destructors of the program may run after ours in each round and use the slot, until a
 * check finds that the thread is gone.
 *
 * Claims are compare-and-swaps of `thread`, without a lock, so that a signal handler may claim. A
 * claim raises `used`, then fences: a thread that searches for names and misses the record made its
 * barrier before that fence, so this reader sees every unlink that the looker relies on.
 *
 * The mode. Drivers read `drivers_skip` after their goal; readers read their slot's `fenced` after
 * they wrote the name. To fenced: notify all slots, membarrier, only then let drivers skip theirs.
 * To fence-free: first make drivers use the membarrier again, then notify the slots. A thread that
 * claims while the mode changes sets its slots fence-free, fences, and reads the mode once more;
 * the switch writes the mode, fences, and then notifies the slots. So one of them sees the other.
 */
#include <errno.h>
#include <signal.h>

#include "base/pace.h"
#include "bug_search.h"
#include "gp/user/mode.h"
#include "gp/user/reader_exit.h"
#include "toolkit/domains/hazard_slots.h"

#define ALL_SLOTS ((UINT32_C(1) << PRUDENCE_HAZARDS) - 1)
/* In `thread`: a thread, 0, an orphan (below 0, each time another number), or: */
#define BEING_REAPED INT32_MIN
#define OF_THE_CHILD INT32_MAX /* while a forked child searches the records */

_Static_assert(sizeof(struct prudence_hazards) == 128, "two cache lines, found from a slot");

static struct hazard_chunk first_hazard_chunk; /* lets the first threads read without memory */
struct hazard_chunk *hazard_chunks = &first_hazard_chunk;

/* The record whose slots this thread takes next. Inlined calls have it as hazards_self, but with
 * check=1, when all calls come here. */
static __thread struct prudence_hazards *hazards_first __attribute__((tls_model("initial-exec")));
static __thread struct prudence_hazards *hazards_self __attribute__((tls_model("initial-exec")));
extern __thread struct prudence_hazards *prudence_hazards_self
    __attribute__((alias("hazards_self")));
/* This thread's records, and the one where the next search for a free slot begins. */
static __thread struct hazard_owner *mine __attribute__((tls_model("initial-exec")));
static __thread struct hazard_owner *look_from __attribute__((tls_model("initial-exec")));
static __thread int32_t my_id __attribute__((tls_model("initial-exec"))); /* in these records */

static uint32_t orphans;                       /* that ever were; atomic */
static uint32_t slots_fenced = 1;              /* of new slots; atomic */
static uint32_t drivers_skip = 1;              /* atomic */
static uint32_t switching;                     /* compare-and-swap */
static uint64_t gone_asked_at, gone_looked_at; /* ns; as those of a domain */
static unsigned reap_from;                     /* where the next check begins; a hint */

/* ----------------------------------------------------------------------------------- records */

static struct prudence_hazards *record_of(struct prudence_hazard *hazard)
{
    return prudence_hazard_record_(hazard);
}

static uint32_t bit_of(const struct prudence_hazards *record, const struct prudence_hazard *hazard)
{
    return UINT32_C(1) << (hazard - record->slots);
}

static void released_twice(const struct prudence_hazard *hazard)
{
    os_panic("prudence_hazard_release: the slot %p is free already; it was released twice",
             (const void *)hazard);
}

/* Takes slots back that other threads have released. Acquire: their uses come before ours. */
static void take_returned(struct prudence_hazards *record)
{
    uint32_t returned = load_relaxed(&record->returned), twice;

    if (!returned)
        return;
    returned = exchange_acquire(&record->returned, 0u);
    twice = returned & (load_relaxed(&record->free) | ~load_relaxed(&record->movable));
    if (unlikely(twice))
        released_twice(&record->slots[__builtin_ctz(twice)]);
    prudence_hazard_remove_bits_(&record->movable, returned);
    prudence_hazard_add_bits_(&record->free, returned);
}

static void set_mode(struct prudence_hazards *record, uint32_t fenced)
{
    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        store_release(&record->slots[i].fenced, fenced);
}

/* See the head of this file. */
static void hazard_slots_follow_mode(struct prudence_hazards *record)
{
    uint32_t fenced = load_acquire(&slots_fenced);

    set_mode(record, fenced);
    os_full_fence(); /* also the claim's fence */
    if (!fenced && load_acquire(&slots_fenced))
        set_mode(record, 1u);
}

static void note_used(struct hazard_chunk *chunk, uint64_t used)
{
    uint64_t before = load_relaxed(&chunk->used);

    while (before < used && !compare_exchange(&chunk->used, &before, used))
        ;
}

static struct prudence_hazards *claim_in(struct hazard_chunk *chunk)
{
    for (unsigned i = 0; i < HAZARDS_IN_CHUNK; i++) {
        struct prudence_hazards *record = &chunk->records[i];
        int32_t nobody = 0;

        if (load_relaxed(&record->thread) || !compare_exchange(&record->thread, &nobody, my_id))
            continue;
        add_relaxed(&chunk->taken, 1u);
        store_relaxed(&chunk->owners[i].claimed_at, os_clock_boot_ns());
        chunk->owners[i].record = record;
        chunk->owners[i].next = mine;
        mine = &chunk->owners[i];
        note_used(chunk, i + 1);
        store_relaxed(&record->movable, 0u);
        store_relaxed(&record->returned, 0u);
        store_relaxed(&record->free, ALL_SLOTS);
        return record;
    }
    return NULL;
}

static struct prudence_hazards *claim_existing(void)
{
    struct prudence_hazards *record = NULL;

    for (struct hazard_chunk *chunk = load_acquire(&hazard_chunks); chunk && !record;
         chunk = chunk->next)
        if (load_relaxed(&chunk->taken) < HAZARDS_IN_CHUNK)
            record = claim_in(chunk);
    return record;
}

static struct prudence_hazards *claim(void)
{
    struct prudence_hazards *record = claim_existing();
    struct hazard_chunk *chunk, *first;

    if (!record) {
        hazard_slots_reap();
        record = claim_existing();
    }
    if (record)
        return record;
    chunk = os_meta_alloc(sizeof *chunk);
    if (!chunk)
        return NULL;
    record = claim_in(chunk);
    first = load_acquire(&hazard_chunks);
    do
        chunk->next = first;
    while (!compare_exchange(&hazard_chunks, &first, chunk));
    return record;
}

/* Returns the lowest `count` free slots that lie side by side, as bits; 0: there are none. */
static uint32_t lowest_row(uint32_t free, unsigned count)
{
    uint32_t firsts = free;

    for (unsigned i = 1; i < count; i++)
        firsts &= free >> i;
    return (firsts & -firsts) * ((UINT32_C(1) << count) - 1);
}

static bool has_row(const struct prudence_hazards *record, unsigned count)
{
    return lowest_row(load_relaxed(&record->free), count) != 0;
}

#define LOOK_MOST 16 /* records; so a thread with many does not read all of them each time */

/* Returns a record of this thread with `count` free slots side by side, or NULL. Reads some
 * records at a time. */
static struct prudence_hazards *own_with_room(unsigned count)
{
    struct hazard_owner *owner = look_from, *const end = look_from;

    if (hazards_first) {
        take_returned(hazards_first);
        if (has_row(hazards_first, count))
            return hazards_first;
    }
    for (unsigned i = 0; i < LOOK_MOST && mine; i++) {
        owner = owner && owner->next ? owner->next : mine;
        look_from = owner;
        take_returned(owner->record);
        if (has_row(owner->record, count))
            return owner->record;
        if (owner == end)
            break;
    }
    return NULL;
}

/* Makes a record with `count` free slots side by side this thread's first. Called with all signals
 * blocked. */
static bool hazard_slots_enter(unsigned count)
{
    struct prudence_hazards *record = own_with_room(count);

    if (!record) {
        os_copy_check();
        reader_exit_watch();
        my_id = os_thread_id();
        record = claim();
        if (!record)
            return false;
        hazard_slots_follow_mode(record);
    }
    hazards_first = record;
    hazards_self = load_relaxed(&check_wanted) ? NULL : record;
    return true;
}

/* Reports a free slot that names something: its last user went on after the release. */
static void check_names_nothing(struct prudence_hazard *hazards, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const void *name = load_relaxed(&hazards[i].name);

        if (!name)
            continue;
        os_report(
            "prudence_hazard_acquire: the free slot %p names %p; search for a "
            "prudence_hazard_protect or prudence_hazard_set after its release",
            (void *)&hazards[i], name);
        store_release(&hazards[i].name, NULL);
    }
}

static struct prudence_hazard *acquire_slow(unsigned count, bool movable)
{
    struct prudence_hazard *hazard = NULL;
    int saved_errno = errno;
    sigset_t saved, all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    if (hazard_slots_enter(count)) {
        uint32_t row = lowest_row(load_relaxed(&hazards_first->free), count);

        prudence_hazard_remove_bits_(&hazards_first->free, row);
        if (movable)
            prudence_hazard_add_bits_(&hazards_first->movable, row);
        hazard = &hazards_first->slots[__builtin_ctz(row)];
        if (unlikely(load_relaxed(&check_wanted)))
            check_names_nothing(hazard, count);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    errno = hazard ? saved_errno : ENOMEM;
    return hazard;
}

struct prudence_hazard *prudence_hazard_acquire_slow(void)
{
    return acquire_slow(1, false);
}

struct prudence_hazard *prudence_hazard_acquire_movable_slow(void)
{
    return acquire_slow(1, true);
}

struct prudence_hazard *prudence_hazard_acquire_row(unsigned count)
{
    if (!count || count > PRUDENCE_HAZARDS) {
        errno = EINVAL;
        return NULL;
    }
    return acquire_slow(count, true);
}

static int32_t new_orphan(void)
{
    return -1 - (int32_t)(add_relaxed(&orphans, 1) % INT32_MAX);
}

static struct hazard_chunk *chunk_of_record(const struct prudence_hazards *record)
{
    struct hazard_chunk *chunk = load_acquire(&hazard_chunks);

    while (record < chunk->records || record >= chunk->records + HAZARDS_IN_CHUNK)
        chunk = chunk->next;
    return chunk;
}

/* Frees an orphan whose slots are all back. Any number of threads may try. The load is sequentially
 * consistent, as the return before it is: AArch64 may execute an acquire load before the return is
 * visible, and then neither this thread nor give_back() would free the record. */
static void free_if_empty(struct prudence_hazards *record)
{
    int32_t orphan = load_ordered(&record->thread);

    if (orphan < 0 && orphan != BEING_REAPED &&
        !(load_relaxed(&record->movable) & ~load_acquire(&record->returned)) &&
        compare_exchange(&record->thread, &orphan, 0))
        sub_relaxed(&chunk_of_record(record)->taken, 1u);
}

static void release_own(struct prudence_hazard *hazard, uint32_t bit)
{
    struct prudence_hazards *record = record_of(hazard);

    if (unlikely((load_relaxed(&record->free) | load_relaxed(&record->returned)) & bit))
        released_twice(hazard);
    compiler_barrier();
    if (load_relaxed(&record->movable) & bit)
        prudence_hazard_remove_bits_(&record->movable, bit);
    prudence_hazard_add_bits_(&record->free, bit);
}

/* The slot's name is gone. Sequentially consistent: see give_back(). */
static void release_others(struct prudence_hazard *hazard, uint32_t bit)
{
    struct prudence_hazards *record = record_of(hazard);
    const int32_t thread = load_relaxed(&record->thread);

    if (unlikely(!thread))
        released_twice(hazard);
    if (unlikely(!(load_relaxed(&record->movable) & bit)))
        os_panic(
            "prudence_hazard_release: the slot %p belongs to thread %d, and is released by thread "
            "%d; acquire it by prudence_hazard_acquire_movable, and release it once",
            (void *)hazard, (int)thread, os_thread_id());
    if (unlikely(__atomic_fetch_or(&record->returned, bit, __ATOMIC_SEQ_CST) & bit))
        released_twice(hazard);
    free_if_empty(record);
}

void prudence_hazard_release_slow(struct prudence_hazard *hazard)
{
    struct prudence_hazards *record;

    if (!hazard)
        return;
    record = record_of(hazard);
    /* prudence_hazard_tell_() is empty in the library, which is built without ThreadSanitizer. */
    tell_release(prudence_hazard_mark_(hazard));
    store_release(&hazard->name, NULL);
    if (mine && load_relaxed(&record->thread) == my_id)
        release_own(hazard, bit_of(record, hazard));
    else
        release_others(hazard, bit_of(record, hazard));
}

/* Returns the number of records in use, and whether only this thread has slots. */
unsigned hazard_slots_records(bool *only_own)
{
    struct hazard_chunk *chunk;
    struct prudence_hazards *record;
    unsigned records = 0, own = 0;
    int32_t self = mine ? my_id : 0;

    for_each_hazards(chunk, record)
    {
        int32_t thread = load_acquire(&record->thread);

        records += thread != 0;
        own += thread && thread == self && !load_relaxed(&record->movable);
    }
    *only_own = own == records;
    return records;
}

/* Returns whether one of these slots of the record names what `is` says, or (NULL) anything. */
static bool record_names_any(const struct prudence_hazards *record, uint32_t slots,
                             bool (*is)(const void *name, void *context), void *context)
{
    for (; slots; slots &= slots - 1) {
        const void *name = load_relaxed(&record->slots[__builtin_ctz(slots)].name);

        if (name && (!is || is(name, context)))
            return true;
    }
    return false;
}

/* The same for the slots of this thread; of movable ones, which another thread may have, only if
 * `movable`. */
bool hazard_slots_thread_names_any(bool movable, bool (*is)(const void *name, void *context),
                                   void *context)
{
    bool any = false;

    for (const struct hazard_owner *owner = mine; owner && !any; owner = owner->next) {
        uint32_t left_out = movable ? 0 : load_relaxed(&owner->record->movable);

        any = record_names_any(owner->record, ALL_SLOTS & ~left_out, is, context);
    }
    return any;
}

/* Returns whether a slot of this thread names something. */
bool hazard_slots_thread_names(void)
{
    return hazard_slots_thread_names_any(false, NULL, NULL);
}

/* The same, also if the slot is movable, so that another thread may have it. */
bool hazard_slots_thread_may_name(void)
{
    return hazard_slots_thread_names_any(true, NULL, NULL);
}

/* Returns the id of the thread that the slot belongs to; 0: none now, or any that wants it. */
int hazard_slots_thread(const struct prudence_hazard *slot)
{
    const struct prudence_hazards *record = prudence_hazard_record_(slot);
    const int32_t thread = load_relaxed(&record->thread);

    return thread <= 0 || load_relaxed(&record->movable) & bit_of(record, slot) ? 0 : thread;
}

/* Returns whether the slot is this thread's, or any thread's that has it. */
bool hazard_slots_may_use(const struct prudence_hazard *slot)
{
    const int thread = hazard_slots_thread(slot);

    return !thread || (mine && thread == my_id);
}

/* ------------------------------------------------------------------------------ ends of threads */

static void report_end(const struct prudence_hazards *record, int32_t thread, const void *name)
{
    os_report(
        "thread %d ends while its slot in record %p protects %p (prudence_hazard_acquire); the "
        "protection is ended",
        (int)thread, (const void *)record, name);
}

/* Gives back the record of a thread that is gone or ending. Release: its uses come before the next
 * claim. The fence: a thread that returns a slot sees the orphan, or we see the slot returned. */
static void give_back(struct prudence_hazards *record, struct hazard_owner *owner, int32_t thread)
{
    uint32_t movable = load_relaxed(&record->movable) & ~load_relaxed(&record->free);

    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++) {
        const void *name = load_relaxed(&record->slots[i].name);

        if (!name || movable >> i & 1)
            continue;
        report_end(record, thread, name);
        store_release(&record->slots[i].name, NULL);
    }
    store_relaxed(&owner->claimed_at, (uint64_t)0);
    store_release(&record->thread, new_orphan());
    os_full_fence();
    free_if_empty(record);
}

static bool holds_slots(const struct prudence_hazards *record)
{
    return (load_relaxed(&record->free) | load_relaxed(&record->movable)) != ALL_SLOTS;
}

/* Called in each round of the thread's destructors. Gives back the records of which the thread
 * holds no slot. Destructors of the program may still use a slot, also after the last of these
 * calls; its record stays until the thread is gone (hazard_slots_reap), or with sandbox=1, when no
 * check finds that, until the last round. */
void hazard_slots_thread_ends(bool last)
{
    const bool for_good = last && !os_calls_widen();
    struct hazard_owner **link = &mine, *owner;
    sigset_t saved, all;

    if (!mine)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &saved);
    hazards_self = hazards_first = NULL;
    look_from = NULL;
    while ((owner = *link)) {
        take_returned(owner->record);
        if (holds_slots(owner->record) && !for_good) {
            link = &owner->next;
            continue;
        }
        *link = owner->next;
        give_back(owner->record, owner, my_id);
    }
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
}

#define ASK_NS   1000000   /* between checks, which are system calls */
#define LOOK_NS  100000000 /* between checks that open files */
#define ASK_MOST 64        /* records that a check asks for */

/* Gives back the record if its thread is gone. The compare-and-swap lets one thread do so; the
 * second check of the time, because a new thread of the same id may have claimed the record. */
static void hazard_slots_reap_one(struct prudence_hazards *record, struct hazard_owner *owner,
                                  bool thoroughly)
{
    int32_t thread = load_acquire(&record->thread), reaped = BEING_REAPED;
    uint64_t claimed_at = load_relaxed(&owner->claimed_at);

    if (!reader_is_gone(thread, claimed_at, thoroughly) ||
        !compare_exchange(&record->thread, &thread, BEING_REAPED))
        return;
    if (load_relaxed(&owner->claimed_at) == claimed_at)
        give_back(record, owner, thread);
    else
        compare_exchange(&record->thread, &reaped, thread);
}

/* Searches for threads that are gone without a sign, from where the last check stopped. Called when
 * there is no free record, and when an object was named. */
void hazard_slots_reap(void)
{
    struct hazard_chunk *chunk;
    struct prudence_hazards *record;
    uint64_t now = os_clock_ns();
    unsigned place = 0, asked = 0, next = 0, from = load_relaxed(&reap_from);
    bool thoroughly;

    if (!is_time_again(&gone_asked_at, now, ASK_NS))
        return;
    os_copy_check(); /* otherwise a forked child would take its own thread for one that is gone */
    thoroughly = is_time_again(&gone_looked_at, now, LOOK_NS);
    for_each_hazards(chunk, record)
    {
        if (place++ < from || asked == ASK_MOST || load_relaxed(&record->thread) <= 0)
            continue;
        hazard_slots_reap_one(record, &chunk->owners[record - chunk->records], thoroughly);
        if (++asked == ASK_MOST)
            next = place;
    }
    store_relaxed(&reap_from, next);
}

/* ---------------------------------------------------------------------------------------- mode */

bool hazard_slots_are_fenced(void)
{
    return load_acquire(&drivers_skip);
}

COLD static void tell_slots(uint32_t fenced)
{
    struct hazard_chunk *chunk;
    struct prudence_hazards *record;

    for_each_hazards(chunk, record) set_mode(record, fenced);
}

/* In the order of the head of this file. */
static void switch_mode(bool fenced)
{
    if (load_relaxed(&slots_fenced) == fenced && load_relaxed(&drivers_skip) == fenced)
        return;
    if (!fenced)
        store_release(&drivers_skip, 0u);
    store_release(&slots_fenced, (uint32_t)fenced);
    os_full_fence();
    tell_slots(fenced);
    if (!fenced)
        return;
    os_membarrier();
    store_release(&drivers_skip, 1u);
}

/* Adopts the option reader_mode and the availability of membarrier before it returns. */
COLD void hazard_slots_follow_options(void)
{
    uint32_t nobody = 0;

    while (!compare_exchange(&switching, &nobody, 1u)) {
        nobody = 0;
        os_sleep_ns(1000);
    }
    switch_mode(!os_membarrier_available() || load_relaxed(&gp_reader_mode) == READER_MODE_FENCED);
    store_release(&switching, 0u);
}

/* After a membarrier that the system refused, which was made by other means: once for all. */
void hazard_slots_barrier_failed(void)
{
    if (!load_relaxed(&drivers_skip))
        hazard_slots_follow_options();
}

/* Informs the race detector that what slots named is no longer used. */
void hazard_slots_tell_over(void)
{
    struct hazard_chunk *chunk;
    struct prudence_hazards *record;

    if (likely(!race_detector_on))
        return;
    for_each_hazards(chunk, record) for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        tell_acquire(prudence_hazard_mark_(&record->slots[i]));
}

/* Makes the record of a thread that the child does not have an orphan, free if no slot is out. A
 * slot that was out when the thread ended may be used by this thread now. */
static void make_orphan(struct prudence_hazards *record)
{
    const bool had_ended = record->thread < 0;

    for (unsigned i = 0; i < PRUDENCE_HAZARDS; i++)
        if (!had_ended || !(record->movable >> i & 1))
            store_relaxed(&record->slots[i].name, NULL);
    record->thread = new_orphan();
    free_if_empty(record);
}

/* Runs in the child of a fork. The parent's other threads are not there, so the slots that they
 * acquired name nothing. */
void hazard_slots_fork_child(bool whole)
{
    struct hazard_chunk *chunk;
    struct prudence_hazards *record;

    switching = 0;
    for (struct hazard_owner *owner = mine; owner; owner = owner->next)
        owner->record->thread = OF_THE_CHILD;
    my_id = os_thread_id();
    for_each_hazards(chunk, record)
    {
        struct hazard_owner *owner = &chunk->owners[record - chunk->records];

        if (record == chunk->records)
            chunk->taken = 0;
        chunk->taken += record->thread != 0;
        if (record->thread == OF_THE_CHILD) {
            record->thread = my_id;
            owner->claimed_at = os_clock_boot_ns();
        } else if (record->thread && !os_thread_lives_in_child(record->thread, whole)) {
            make_orphan(record);
        }
    }
    if (drivers_skip) { /* the copy may have met a switch half-way, page after page */
        slots_fenced = 1;
        tell_slots(1u);
    }
}

const struct gp_part gp_hazard_part = {.follow_options = hazard_slots_follow_options,
                                       .thread_ends = hazard_slots_thread_ends,
                                       .fork_child = hazard_slots_fork_child};
