/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The account of latent bytes, which are deferred and not yet merged, and the limit in force that
 * bounds it (ADR 34).
 *
 * Invariant: the account is never below the truth. Bytes are reserved before an object is deferred,
 * and released after the object is merged. The account is the sum of
 *   - the latent bytes in rings, in transfer batches and in latent slabs;
 *   - bytes that rings have reserved ahead, because fast paths append without asking. Each ring has
 *     at most a batch, and all rings of a CPU together stay below ahead_max
 *     (latent_cache_take_back);
 *   - credits, which are bytes released on a CPU lately and ready to be reserved there again.
 * The last two are taken back before any thread is held back, so nearly all of the limit can be
 * used.
 *
 * Bytes that readers name (latent_slab.c) are counted apart, because no wait would end that: their
 * bound is what the readers' slots can name, whatever the limit is.
 *
 * latent_limit holds with a reader that blocks or stays. While the blocking reader merely waits
 * for a CPU, as with more threads than CPUs, holding writers back gains little, so the limit in
 * force rises, in steps, up to latent_ceiling. It follows the readers (limit_follow): a thread
 * that found no room asks how they fare. One that stays ends the rise at once, and
 * LIMIT_RISE_GRACE_PERIODS without a further rise do.
 *
 * The limit in force is never above the ceiling, whatever order options, rises and falls
 * come in, because each reader of `limit_risen` takes the smaller one.
 *
 * The words of a rise are atomic and there is no lock: a rise is a compare-and-swap of the limit
 * that the thread found full. The remembered pace and reason are hints.
 *
 * Any thread may call these functions, without locks. A caller that reserves or releases owns the
 * CPU's caches, holds the node's lock, or carries the objects. So the account does not change
 * during fork, and the child counts it anew (fork.c).
 */
#include "slab/reclaim/limit.h"

#include "gp/gp_wait.h"
#include "os/os.h"

/* Policy: how exact is the count of deferred bytes? */
#define CREDIT_MAX ((int64_t)64 << 10) /* bytes; counted on a CPU before the sum is written */

/* A ring may reserve 1/AHEAD_PART of the CPU's remaining share, so that the first ring does not
 * take all. */
#define AHEAD_PART 8 /* part; of the CPU's remaining share that a ring may reserve */

/* Policy: how far may latent_limit rise? */
#define MOST_BY_DEFAULT (UINT64_C(256) << 20) /* bytes; most by default, with much memory */
#define PART_OF_MEMORY  64 /* part; of what the process may use, the most by default */
#define UNSET           UINT64_MAX

#define STEP_PART 16      /* part; of latent_limit, the first step and the least */
#define STEP_NS   4000000 /* ns; a step should last for as long, at the pace of the last one */

struct account {
    int64_t credit; /* bytes in `total` that no thread uses */
    int64_t ahead;  /* bytes that rings of this CPU reserved ahead at their last visits */
    int64_t quota;  /* bytes that one ring may reserve ahead */
    /* bytes of batches closed since this CPU last requested a grace period; a hint */
    uint64_t due;
    char pad[CACHE_LINES_APART - 4 * sizeof(int64_t)];
};

uint64_t slab_growth_limit READ_MOSTLY = 0;

static struct account *accounts READ_MOSTLY = NULL;
static int64_t credit_max READ_MOSTLY = 0,
                          ahead_max READ_MOSTLY = 0; /* for each CPU; they follow the limit */

/* Written by all CPUs. */
static struct total {
    int64_t bytes;
} __attribute__((aligned(CACHE_LINES_APART))) total; /* on cache lines of its own */
static int64_t total_peak;
static uint64_t limit_named_bytes; /* atomic */
uint64_t limit_overruns;

uint64_t slab_latent_limit READ_MOSTLY = UINT64_C(32) << 20;

static uint64_t set_ceiling READ_MOSTLY = UNSET;    /* the option */
static uint64_t part_of_memory READ_MOSTLY = UNSET; /* found out at the first need */
static bool limit_is_default READ_MOSTLY = true;

static uint64_t risen_at_ended; /* grace periods that had ended at the last rise */
static uint64_t risen_at, step; /* ns, and bytes, of the last rise */
static uint32_t state_seen;     /* enum gp_reader_state, at the last check */
uint64_t limit_rises;
uint64_t limit_risen;

/* Sets the limits of each CPU. Half of its share of latent_limit may be reserved ahead, however far
 * the limit in force has risen. */
static void set_shares(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), share = limit / os_cpu_count();

    store_relaxed(&credit_max, (int64_t)(limit ? min_size(CREDIT_MAX, share / 16) : CREDIT_MAX));
    store_relaxed(&ahead_max, limit ? (int64_t)(share / 2) : INT64_MAX);
    for (unsigned cpu = 0; accounts && cpu < os_cpu_count(); cpu++)
        store_relaxed(&accounts[cpu].quota, load_relaxed(&ahead_max));
}

COLD bool limit_start(void)
{
    accounts = os_meta_alloc(os_cpu_count() * sizeof *accounts);
    set_shares();
    return accounts != NULL;
}

/* Called when no cache remains. */
void limit_stop(void)
{
    if (accounts)
        os_meta_free(accounts, os_cpu_count() * sizeof *accounts);
    accounts = NULL;
}

void limit_change(uint64_t bytes)
{
    store_relaxed(&slab_latent_limit, bytes);
    set_shares();
}

/* ---------------------------------------------------------------------------------- in force */

/* Returns the ceiling that is known without asking the system. */
static uint64_t known_most(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), most = load_relaxed(&set_ceiling);

    if (most == UNSET)
        most = load_relaxed(&limit_is_default) ? load_relaxed(&part_of_memory) : limit;
    return limit && most != UNSET ? max_size(limit, most) : limit;
}

/* Returns the ceiling in bytes, 0 if there is no limit. May read files. */
uint64_t limit_ceiling(void)
{
    if (load_relaxed(&part_of_memory) == UNSET && load_relaxed(&limit_is_default)) {
        uint64_t allowed = os_memory_allowed();

        if (allowed)
            store_relaxed(&part_of_memory,
                          (uint64_t)min_size(MOST_BY_DEFAULT, allowed / PART_OF_MEMORY));
    }
    return load_relaxed(&state_seen) == GP_READER_UNKNOWN ? load_relaxed(&slab_latent_limit)
                                                          : known_most();
}

/* Has latent_limit in force again. */
void limit_fall(void)
{
    store_relaxed(&limit_risen, (uint64_t)0);
}

/* Returns the limit in force in bytes; 0: none. Any context. */
uint64_t limit_in_force(void)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), up = load_relaxed(&limit_risen);

    if (likely(up <= limit) || !limit)
        return limit;
    if (gp_ended() - load_relaxed(&risen_at_ended) < LIMIT_RISE_GRACE_PERIODS)
        return min_size(up, known_most());
    /* Unless another thread has raised it since. */
    compare_exchange(&limit_risen, &up, (uint64_t)0);
    return limit;
}

/* Returns whether a check of the readers may raise the limit in force, or end a rise. */
bool limit_may_rise(void)
{
    return limit_ceiling() > load_relaxed(&slab_latent_limit) || load_relaxed(&limit_risen) ||
           load_relaxed(&state_seen) == GP_READER_UNKNOWN;
}

/* Returns the bytes of the next step. The last one was used up since; it should have lasted for
 * STEP_NS, so that checks are as rare with fast writers as with slow ones. */
static uint64_t next_step(uint64_t now, uint64_t limit)
{
    uint64_t least = max_size(limit / STEP_PART, 1);
    uint64_t last = clamp_size(load_relaxed(&step), least, limit);
    uint64_t lasted = max_size(now - load_relaxed(&risen_at), 1);

    if (lasted < STEP_NS)
        return min_size(2 * last, limit);
    return max_size(least, last / (lasted / STEP_NS));
}

/*
 * Called by a thread that found the limit in force full, with nothing held, and how the blocking
 * readers fare. Returns whether the limit rose. Of several threads that found the same limit, one
 * raises it.
 */
bool limit_follow(enum gp_reader_state state)
{
    uint64_t limit = load_relaxed(&slab_latent_limit), in_force = limit_in_force();
    uint64_t was = load_relaxed(&limit_risen), now = os_clock_ns(), more;

    store_relaxed(&state_seen, (uint32_t)state);
    if (state == GP_READER_STAYS || state == GP_READER_UNKNOWN)
        limit_fall();
    if (state != GP_READER_LACKS_CPU || !limit || in_force >= limit_ceiling())
        return false;
    more = next_step(now, limit);
    /* Before the rise, which readers would otherwise take for an old one. */
    store_relaxed(&risen_at_ended, gp_ended());
    if (!compare_exchange(&limit_risen, &was, (uint64_t)min_size(in_force + more, limit_ceiling())))
        return true;
    store_relaxed(&risen_at, now);
    store_relaxed(&step, more);
    add_relaxed(&limit_rises, 1);
    return true;
}

/* ------------------------------------------------------------------------------------ options */

void limit_set_ceiling(uint64_t bytes)
{
    store_relaxed(&set_ceiling, bytes);
}

static void limit_is_the_ceiling(void)
{
    store_relaxed(&limit_is_default, false);
}

static bool is_below(uint64_t most, uint64_t limit)
{
    return most != UNSET && limit && most < limit;
}

/* Returns whether a new latent_limit is not above the ceiling that the user set. */
bool limit_is_possible(uint64_t bytes)
{
    return !is_below(load_relaxed(&set_ceiling), bytes);
}

/* Returns whether a new ceiling is not below latent_limit. */
bool limit_ceiling_is_possible(uint64_t bytes)
{
    return !is_below(bytes, load_relaxed(&slab_latent_limit));
}

/* Replaces a ceiling below the limit by the limit, and returns false then. */
bool limit_check_ceiling(void)
{
    if (limit_ceiling_is_possible(load_relaxed(&set_ceiling)))
        return true;
    limit_set_ceiling(UNSET);
    limit_is_the_ceiling();
    return false;
}

/* Changes the limit, which then is the ceiling as well unless the user sets that. */
void limit_set_by_user(uint64_t bytes)
{
    limit_is_the_ceiling();
    limit_change(bytes);
}

/* Returns why the limit in force is what it is, for a dump. */
const char *limit_why(void)
{
    static const char *const why[] = {
        [GP_READER_NONE] = "no reader was blocking",
        [GP_READER_LACKS_CPU] = "blocking readers wait for a CPU",
        [GP_READER_NEW] = "the blocking reader has not been there for long",
        [GP_READER_UNKNOWN] =
            "the system or the domain does not say whether readers wait for a CPU",
        [GP_READER_STAYS] = "the blocking reader sleeps, or stays",
    };

    if (limit_in_force() > load_relaxed(&slab_latent_limit))
        return why[GP_READER_LACKS_CPU];
    return why[load_relaxed(&state_seen)];
}

/* ---------------------------------------------------------------------------------- reserving */

static bool credit_use(struct account *account, int64_t bytes)
{
    int64_t credit = load_relaxed(&account->credit);

    while (credit >= bytes)
        if (compare_exchange(&account->credit, &credit, credit - bytes))
            return true;
    return false;
}

static void note_peak(int64_t now)
{
    int64_t peak = load_relaxed(&total_peak);

    while (now > peak && !compare_exchange(&total_peak, &peak, now))
        ;
}

static bool total_raise(int64_t bytes)
{
    int64_t limit = (int64_t)limit_in_force(), now = load_relaxed(&total.bytes);

    do
        if (limit && bytes > limit - now)
            return false;
    while (!compare_exchange(&total.bytes, &now, now + bytes));
    note_peak(now + bytes);
    return true;
}

static void credits_collect(void)
{
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        if (load_relaxed(&accounts[cpu].credit))
            sub_relaxed(&total.bytes, exchange_relaxed(&accounts[cpu].credit, 0));
}

/* Reserves bytes that are about to be deferred. Returns false if the limit does not allow it. */
bool limit_reserve(unsigned cpu, size_t bytes)
{
    int64_t extra = load_relaxed(&credit_max);

    if (credit_use(&accounts[cpu], (int64_t)bytes))
        return true;
    if (total_raise((int64_t)bytes + extra)) {
        add_relaxed(&accounts[cpu].credit, extra);
        return true;
    }
    credits_collect();
    return total_raise((int64_t)bytes);
}

/* Reserves past the limit, for a deferral that may not wait, or has waited for wait_max. */
void limit_reserve_past(unsigned cpu, size_t bytes)
{
    if (limit_reserve(cpu, bytes))
        return;
    note_peak(add_relaxed(&total.bytes, (int64_t)bytes) + (int64_t)bytes);
    add_relaxed(&limit_overruns, 1);
}

/* Releases bytes that are no longer latent, or were not used. */
void limit_release(unsigned cpu, size_t bytes)
{
    int64_t credit = add_relaxed(&accounts[cpu].credit, (int64_t)bytes) + (int64_t)bytes;

    if (credit > 2 * load_relaxed(&credit_max))
        sub_relaxed(&total.bytes, exchange_relaxed(&accounts[cpu].credit, 0));
}

/* -------------------------------------------------------------------------------------- named */

/* Counts bytes of the account as named. */
void limit_set_apart(unsigned cpu, size_t bytes)
{
    add_relaxed(&limit_named_bytes, bytes);
    limit_release(cpu, bytes);
}

/* Counts named bytes in the account again, even past the limit. */
void limit_count_again(size_t bytes)
{
    if (likely(!bytes))
        return;
    limit_named_go(bytes);
    note_peak(add_relaxed(&total.bytes, (int64_t)bytes) + (int64_t)bytes);
}

/* Named bytes are no longer latent. */
void limit_named_go(size_t bytes)
{
    if (unlikely(bytes))
        sub_relaxed(&limit_named_bytes, bytes);
}

uint64_t limit_named(void)
{
    return load_relaxed(&limit_named_bytes);
}

/* -------------------------------------------------------------------------------------- ahead */

/*
 * Returns the number of objects that a ring of the CPU, which has `ahead` now, may reserve ahead.
 * Returns 0 if the CPU's share is used up, and unused reservations should be taken back. When many
 * rings share, each may have less; otherwise a few would have all, and deferrals into the others
 * would take the slow path. So the quota halves when the share is used up, and grows by an object
 * each time there is plenty.
 */
unsigned limit_ahead_share(unsigned cpu, size_t stride, unsigned ahead, unsigned batch)
{
    struct account *account = &accounts[cpu];
    int64_t others = load_relaxed(&account->ahead) - (int64_t)(ahead * stride);
    int64_t all = load_relaxed(&ahead_max), room = all - others;
    int64_t quota = load_relaxed(&account->quota);

    if (room < (int64_t)stride) {
        store_relaxed(&account->quota, quota / 2);
        return 0;
    }
    if (quota < all && room > all / 2)
        store_relaxed(&account->quota, quota + (int64_t)stride);
    if (room / AHEAD_PART < quota)
        quota = room / AHEAD_PART;
    if ((size_t)quota >= batch * stride)
        return batch; /* saves a division at each miss */
    return (unsigned)clamp_size((size_t)quota / stride, 1, batch);
}

/* Notes a change of a ring's reservation ahead, in bytes. */
void limit_ahead_note(unsigned cpu, int64_t change)
{
    if (change)
        add_relaxed(&accounts[cpu].ahead, change);
}

/* ---------------------------------------------------------------------------------------- due */

/* Notes a batch of `bytes` closed on the CPU. Different threads may own caches of the CPU at the
 * same time, so a count may be lost. */
void limit_due_note(unsigned cpu, size_t bytes)
{
    store_relaxed(&accounts[cpu].due, load_relaxed(&accounts[cpu].due) + bytes);
}

/* Returns the bytes of all caches closed here since the last grace period requested here; a new one
 * would serve them. */
uint64_t limit_due(unsigned cpu)
{
    return load_relaxed(&accounts[cpu].due);
}

void limit_due_clear(unsigned cpu)
{
    store_relaxed(&accounts[cpu].due, (uint64_t)0);
}

/* ------------------------------------------------------------------------------------ names */

static bool fits_under(int64_t limit, size_t bytes, bool idle)
{
    int64_t now = load_relaxed(&total.bytes) + (int64_t)bytes;

    if (!limit || now <= limit)
        return true;
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        now -=
            load_relaxed(&accounts[cpu].credit) + (idle ? load_relaxed(&accounts[cpu].ahead) : 0);
    return now <= limit;
}

/* Returns whether `bytes` more fit, and with `idle`, whether they would after taking back all
 * reservations ahead. */
bool limit_fits(size_t bytes, bool idle)
{
    return fits_under((int64_t)limit_in_force(), bytes, idle);
}

/* Returns whether so much is latent that no cache should grow before a grace period. */
bool limit_holds_growth(void)
{
    return !fits_under((int64_t)load_relaxed(&slab_growth_limit), 0, true);
}

/* Returns whether `bytes` exceed the limit, and so can never be deferred under it. */
bool limit_never_fits(size_t bytes)
{
    uint64_t limit = load_relaxed(&slab_latent_limit);

    return limit && bytes > limit;
}

/* Returns the account without credits, which is never below the latent bytes. */
uint64_t limit_used(void)
{
    int64_t sum = load_relaxed(&total.bytes);

    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        sum -= load_relaxed(&accounts[cpu].credit);
    return sum > 0 ? (uint64_t)sum : 0;
}

/* Returns the account with reservations ahead and credits, by one load. */
uint64_t limit_used_roughly(void)
{
    int64_t sum = load_relaxed(&total.bytes);

    return sum > 0 ? (uint64_t)sum : 0;
}

uint64_t limit_used_peak(void)
{
    return (uint64_t)load_relaxed(&total_peak);
}

/* -------------------------------------------------------------------------------------- fork */

/* Runs in the child, before it adds all latent bytes again, named ones too. Only credits
 * remain. */
void limit_clear(void)
{
    total.bytes = 0;
    limit_named_bytes = 0;
    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++) {
        total.bytes += accounts[cpu].credit;
        accounts[cpu].ahead = 0;
    }
}

void limit_add(unsigned cpu, size_t bytes, size_t ahead)
{
    total.bytes += (int64_t)bytes;
    accounts[cpu].ahead += (int64_t)ahead;
}
