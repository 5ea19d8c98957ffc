/* SPDX-License-Identifier: MIT */
/*
 * Grace periods of any scheme: snapshot, request, drive, wait.
 *
 * Every domain counts grace periods in a sequence, and `completed` says how many are over. A cookie
 * is taken after a full fence F, which comes after the objects were detached: the cookie is the
 * sequence s found then, plus one. Grace period s + 1 starts with the increment of the sequence to
 * s + 1, which comes after that load. So a scheme keeps one promise: a thread that finds the goal g
 * in the sequence may raise `completed` to g as soon as every section has ended that was entered
 * before the thread scanned, and that could have found an object unlinked before that F. Each
 * scheme explains how at the head of its file: memb.c (and qsbr), srcu.c, set.c, external.c.
 *
 * Starting is a compare-and-swap and completing takes the maximum, so any number of threads may do
 * either, and a thread that loses its CPU delays no other.
 */
#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "gp/user/process_life.h"
#include "gp/user/reader_exit.h"
#include "gp/user/slots.h"

gp_cookie gp_snapshot(struct prudence_domain *domain)
{
    os_full_fence(); /* F above */
    return (gp_cookie){load_relaxed(&domain->shared.sequence) + GP_STEP};
}

/* Starts the grace period of `cookie`, whatever the scheme. */
static void drive_start(struct prudence_domain *domain, gp_cookie cookie)
{
    uint64_t sequence = load_relaxed(&domain->shared.sequence);

    /* A cookie is at most one step ahead, so one success of any thread is enough. */
    if (sequence_before(sequence, cookie.value) &&
        compare_exchange(&domain->shared.sequence, &sequence, sequence + GP_STEP))
        os_probe3(gp_start, domain, domain->name, sequence + GP_STEP);
}

void gp_request(struct prudence_domain *domain, gp_cookie cookie)
{
    if (domain->scheme->drive)
        drive_start(domain, cookie);
}

/* Release, so that everything before the raise is visible with the new value. */
uint64_t gp_drive_raise(uint64_t *value, uint64_t to)
{
    uint64_t current = load_relaxed(value);

    while (sequence_before(current, to))
        if (compare_exchange(value, &current, to))
            return to - current;
    return 0;
}

static const void *ends_of(const struct prudence_domain *domain)
{
    return (const char *)domain + PRUDENCE_DOMAIN_ENDS_OFFSET;
}

void gp_drive_tell_section_ends(const struct prudence_domain *domain)
{
    tell_release(ends_of(domain));
}

void gp_drive_tell_over(const struct prudence_domain *domain)
{
    if (likely(!race_detector_on))
        return;
    tell_acquire(ends_of(domain));
    if (domain->scheme->tell_over)
        domain->scheme->tell_over(domain);
}

/* The count of all domains is kept only once a thread has asked for it, because CPUs whose domains
 * have nothing else in common would write one line. */
static bool counts_ended READ_MOSTLY;
static uint64_t ended_everywhere; /* atomic */

uint64_t gp_ended(void)
{
    if (!load_relaxed(&counts_ended))
        store_relaxed(&counts_ended, true);
    return load_relaxed(&ended_everywhere);
}

void gp_drive_count(uint64_t ended)
{
    if (unlikely(load_relaxed(&counts_ended)))
        add_relaxed(&ended_everywhere, ended);
}

bool gp_polls_objects(const struct prudence_domain *domain)
{
    return domain->scheme->poll_objects != NULL;
}

static bool only_names_hold(const struct prudence_domain *domain, gp_cookie cookie)
{
    return domain->scheme->only_names_hold && domain->scheme->only_names_hold(domain, cookie);
}

unsigned gp_poll_objects(struct prudence_domain *domain, gp_cookie cookie, void **objects,
                         unsigned count, size_t size, bool *only_names)
{
    if (only_names)
        *only_names = only_names_hold(domain, cookie);
    return domain->scheme->poll_objects(domain, cookie, objects, count, size);
}

/* Raises `completed`. Informs the race detector that sections have ended, because for an external
 * domain the completing thread is the one that synchronized with the readers. */
void gp_drive_complete(struct prudence_domain *domain, uint64_t upto)
{
    uint64_t ended;

    gp_drive_tell_section_ends(domain);
    ended = gp_drive_raise(&domain->progress.completed, upto) / GP_STEP;
    if (!ended)
        return;
    add_relaxed(&domain->grace_periods, ended);
    gp_drive_count(ended);
    os_probe4(gp_end, domain, domain->name, upto, ended);
}

static void drive_by(struct prudence_domain *domain, drive_function drive)
{
    uint64_t goal;

    reader_exit_watch_late();
    if (!drive)
        return;
    os_calls_widen();
    goal = load_acquire(&domain->shared.sequence);
    if (sequence_before(load_acquire(&domain->progress.completed), goal))
        drive(domain, goal);
}

void gp_drive(struct prudence_domain *domain)
{
    drive_by(domain, domain->scheme->drive);
}

/*
 * Pushes on for a thread of the program that asked for just this: ends the newest grace period, if
 * no reader is blocking, and only then starts the next one. Returns whether it has started. The
 * cookie of an object that was unlinked before the call is that of the next one, or less. So once
 * another call has returned true, the object is safe.
 */
bool gp_drive_for_caller(struct prudence_domain *domain)
{
    const struct gp_scheme *scheme = domain->scheme;
    drive_function drive = scheme->drive ? scheme->drive : scheme->drive_for_caller;
    gp_cookie next = gp_snapshot(domain);

    drive_by(domain, drive);
    if (!drive || !gp_poll(domain, (gp_cookie){next.value - GP_STEP}))
        return false;
    drive_start(domain, next);
    drive_by(domain, drive);
    return true;
}

/* Returns whether a grace period that does not end has a blocking reader that can be named. */
bool gp_drive_sees_readers(const struct prudence_domain *domain)
{
    return domain->scheme->drive && domain->scheme->held_up_by;
}

/* Time for which another driver is trusted to be scanning. */
#define SCAN_TRUST_NS 20000

static void drive_shared(struct prudence_domain *domain)
{
    uint64_t began = load_relaxed(&domain->scan_began);
    uint64_t now = os_clock_ns();

    if (began && now - began < SCAN_TRUST_NS)
        return;
    store_relaxed(&domain->scan_began, now);
    gp_drive(domain);
    store_relaxed(&domain->scan_began, (uint64_t)0);
}

struct reader_slot *gp_drive_held_up_by(const struct prudence_domain *domain)
{
    return domain->scheme->held_up_by ? domain->scheme->held_up_by(domain) : NULL;
}

bool gp_is_held_up(const struct prudence_domain *domain)
{
    return gp_drive_held_up_by(domain) != NULL;
}

bool gp_is_requested(const struct prudence_domain *domain, gp_cookie cookie)
{
    return !sequence_before(load_relaxed(&domain->shared.sequence), cookie.value) &&
           sequence_before(load_relaxed(&domain->asked_goal), cookie.value);
}

/* Drives even if held up, which only checks how long the reader has stayed. That makes no scan, so
 * other drivers need not be notified. */
bool gp_advance(struct prudence_domain *domain, gp_cookie cookie)
{
    if (gp_is_held_up(domain)) {
        gp_drive(domain);
        return false;
    }
    gp_request(domain, cookie);
    drive_shared(domain);
    return true;
}

/*
 * Each success at once writes the lines of `sequence` and of `completed`. This costs nothing while
 * only one CPU's writers use them. If writers of another CPU read them as well, each batch costs
 * two cache misses, and sharing a grace period now and then is better. So only the CPU that last
 * ended a grace period here may do this; the others ask readers, which happens more rarely.
 */
enum gp_tried gp_try(struct prudence_domain *domain, gp_cookie cookie, unsigned cpu)
{
    enum gp_tried tried;
    uint32_t last;

    if (gp_poll(domain, cookie))
        return GP_OVER;
    if (!domain->scheme->at_once || domain->phases)
        return GP_REFUSED;
    last = load_relaxed(&domain->tried_on);
    tried = (!last || last == cpu + 1) && domain->scheme->at_once(domain, cookie)
                ? GP_OVER
                : domain->scheme->ask(domain, cookie);
    if (tried == GP_OVER && last != cpu + 1)
        store_relaxed(&domain->tried_on, cpu + 1);
    return tried;
}

#define SPIN_ROUNDS 48 /* some 10 us */

/* Pauses before the next check, longer each round, because readers wake no thread. */
static void wait_a_little(unsigned round)
{
    if (round < SPIN_ROUNDS) {
        for (unsigned i = 0; i < round; i++)
            os_relax();
        return;
    }
    os_sleep_ns(round < 2 * SPIN_ROUNDS ? 10000 : 100000);
}

/* Returns whether two grace periods are under way, so that waiters share and do not start a third.
 * A thread that comes then gets the same cookie, and waits for the readers of these two anyway. */
static bool is_crowded(const struct prudence_domain *domain)
{
    uint64_t completed = load_acquire(&domain->progress.completed);

    return load_relaxed(&domain->shared.sequence) - completed >= 2 * GP_STEP;
}

void gp_drive_urge(struct prudence_domain *domain)
{
    if (domain->scheme->urge)
        domain->scheme->urge(domain);
}

/* Drives for a thread of the program that waits for just this domain. */
static void drive_for_waiter(struct prudence_domain *domain, bool may_block)
{
    gp_drive_urge(domain);
    if (may_block && domain->scheme->block)
        domain->scheme->block(domain);
}

static bool wait_until(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline,
                       bool for_names, bool is_implicit)
{
    debug_assert(os_locks_held() == 0);
    os_copy_check();
    for (unsigned round = 0; !gp_poll(domain, cookie); round++) {
        if (!for_names || !is_crowded(domain)) /* names may hold the two up for ever */
            gp_request(domain, cookie);
        gp_drive(domain);
        if (gp_poll(domain, cookie) || (!for_names && only_names_hold(domain, cookie)))
            break;
        if (deadline && os_clock_ns() >= deadline)
            return false;
        if (!is_implicit)
            drive_for_waiter(domain, !deadline);
        wait_a_little(round);
    }
    gp_drive_tell_over(domain);
    return true;
}

bool gp_wait(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline)
{
    return wait_until(domain, cookie, deadline, true, false);
}

bool gp_wait_for_sections(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline,
                          bool is_implicit)
{
    return wait_until(domain, cookie, deadline, false, is_implicit);
}

/* Updates a sliding mean. If the driver lost its CPU, the sample is long and unrelated to the cost,
 * so a sample counts for at most some four times the mean. */
void gp_drive_note_cost(struct prudence_domain *domain, uint64_t membarrier)
{
    uint64_t mean = load_relaxed(&domain->membarrier_cost);

    store_relaxed(&domain->membarrier_cost, (mean * 7 + min_size(membarrier, 4 * mean + 1000)) / 8);
}

uint64_t gp_cost(const struct prudence_domain *domain)
{
    return gp_drive_is_cheap(domain) ? 0 : max_size(load_relaxed(&domain->membarrier_cost), 1);
}

bool gp_drive_is_cheap(const struct prudence_domain *domain)
{
    return !domain->scheme->is_cheap || domain->scheme->is_cheap(domain);
}

/* Notes the first reader that is blocking; returns false if there is none. */
static bool note_expired_reader(struct prudence_domain *domain)
{
    uint64_t completed = load_relaxed(&domain->progress.completed);
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, domain)
    {
        uint64_t word = load_relaxed(&slot->reader.word);

        if (word && !sequence_before(completed, word & ~PRUDENCE_NESTING_MASK)) {
            store_relaxed(&domain->expired_word, word & ~PRUDENCE_NESTING_MASK);
            store_release(&domain->expired_reader, slot);
            return true;
        }
    }
    return false;
}

/* Notes the grace period itself, because no slot says which reader is blocking. */
static void note_expired_grace_period(struct prudence_domain *domain)
{
    store_relaxed(&domain->expired_word, load_relaxed(&domain->progress.completed));
    store_release(&domain->expired_manually, 1u);
}

void gp_note_expired(struct prudence_domain *domain)
{
    if (domain->scheme->note_expired)
        domain->scheme->note_expired(domain);
    else if (!note_expired_reader(domain) && !gp_drive_sees_readers(domain))
        note_expired_grace_period(domain);
}

bool gp_worth_waiting(struct prudence_domain *domain)
{
    struct reader_slot *slot = load_acquire(&domain->expired_reader);
    uint64_t word;

    if (domain->scheme->worth_waiting)
        return domain->scheme->worth_waiting(domain);
    if (load_acquire(&domain->expired_manually)) {
        if (load_relaxed(&domain->progress.completed) == load_relaxed(&domain->expired_word))
            return false;
        store_relaxed(&domain->expired_manually, 0u);
    }
    if (!slot)
        return true;
    word = load_relaxed(&slot->reader.word);
    if (word && (word & ~PRUDENCE_NESTING_MASK) == load_relaxed(&domain->expired_word))
        return false;
    store_relaxed(&domain->expired_reader, (struct reader_slot *)NULL);
    return true;
}
