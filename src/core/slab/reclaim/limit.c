/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The account of latent bytes, which are deferred and not yet merged, held under the limit in force
 * (ceiling.c), which is latent_limit unless readers lack a CPU.
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
 * Any thread may call these functions, without locks. A caller that reserves or releases owns the
 * CPU's caches, holds the node's lock, or carries the objects. So the account does not change
 * during fork, and the child counts it anew (fork.c).
 */
#include "slab/reclaim/limit.h"

#include "os/os.h"
#include "slab/reclaim/ceiling.h"

/* Policy: how exact is the count of deferred bytes? */
#define CREDIT_MAX ((int64_t)64 << 10) /* bytes; counted on a CPU before the sum is written */

/* A ring may reserve 1/AHEAD_PART of the CPU's remaining share, so that the first ring does not
 * take all. */
#define AHEAD_PART 8 /* part; of the CPU's remaining share that a ring may reserve */

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

/* Changes the limit, which then is the ceiling as well unless the user sets that. */
void limit_set_by_user(uint64_t bytes)
{
    ceiling_is_the_limit();
    limit_change(bytes);
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
    int64_t limit = (int64_t)ceiling_in_force(), now = load_relaxed(&total.bytes);

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
    return fits_under((int64_t)ceiling_in_force(), bytes, idle);
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
