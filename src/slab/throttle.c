/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Garbage under its limit: deferrals and growth are held back until there is room (ADR 6, 34). How long: wait.c.
 *
 * The lock of the list of caches is held while caches are emptied, never across a wait.
 */
#include "slab/throttle.h"

#include "base/pace.h"
#include "gp/gp.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/drain.h"
#include "slab/latent_account.h"
#include "slab/latent_cache.h"
#include "slab/wait.h"

#define THROTTLE_PAUSE_MIN_NS 20000
#define THROTTLE_PAUSE_MAX_NS 1000000 /* at first; then a 64th of the time that was waited */
#define THROTTLE_LOOK_NS      10000000
#define THROTTLE_SLEEP_NS     50000000 /* at least until a sleeping thread looks for itself */
#define THROTTLE_TURN_NS      4000000  /* between two of all that sleep */

/* Of the threads that are held back. */
static uint32_t looking; /* one of them is at it; compare-and-swap */
static uint32_t looking_everywhere;
static uint32_t looks_that_helped; /* the others sleep on it */
static uint32_t sleepers;          /* so many */
static uint64_t looked_at;         /* ns: when one of them looked at all CPUs last */

static void settle(struct prudence_cache *cache)
{
    cache_settle(cache, false);
}

static void take_back_here(struct prudence_cache *cache)
{
    struct cpu_cache *cpu = cache->percpu ? cpu_cache_of(cache, os_cpu_current()) : NULL;

    if (!cpu || !load_relaxed(&cpu->ahead))
        return;
    cpu = cpu_cache_take(cache, &cpu);
    if (!cpu)
        return;
    latent_take_back(cache, cpu);
    cpu_cache_release(cpu);
}

/* What rings of this CPU have reserved and not used goes back to the account. */
void latent_take_back_here(void)
{
    for_all_caches(take_back_here);
}

/*
 * Whether all CPUs and caches are worth a look. Yes for the thread whose turn it is, if what it closed at its last
 * look is safe by now, or if this is its first look and no reader is in the way. After a while yes for one of all
 * threads, because other domains may have made progress.
 */
static bool is_worth_a_look(const struct prudence_cache *cache, const struct throttle *throttle)
{
    if (throttle->has_turn && (throttle->looked ? gp_poll(cache->domain, throttle->cookie)
                                                : !gp_is_held_up(cache->domain)))
        return true;
    return is_time_again(&looked_at, os_clock_ns(), THROTTLE_LOOK_NS);
}

/* Closes the batches of all CPUs, and pushes grace periods of all domains on; this disturbs other CPUs. Called by one
 * thread at a time: it holds the lock of the list of caches, and may lose its CPU while it does. */
static void settle_everywhere(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    uint32_t nobody = 0;

    if (!compare_exchange(&looking_everywhere, &nobody, 1u))
        return;
    settle(cache);
    throttle->cookie = gp_snapshot(cache->domain);
    throttle->looked = true;
    gp_request(cache->domain, throttle->cookie);
    gp_drive(cache->domain);
    for_all_caches(settle);
    if (!latent_fits(bytes, false)) {
        latent_drive_all();
        for_all_caches(settle);
    }
    store_release(&looking_everywhere, 0u);
}

/* Of one that may not wait: what CPUs have reserved and not used is enough. */
static bool settle_at_once(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    cache_settle_here(cache);
    if (!latent_fits(bytes, false))
        settle_everywhere(cache, bytes, throttle);
    return latent_fits(bytes, false);
}

/* One attempt to make room, without waiting: as little as will do. */
static bool settle_for(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    cache_settle_here(cache);
    if (latent_fits(bytes, false))
        return true;
    if (is_worth_a_look(cache, throttle))
        settle_everywhere(cache, bytes, throttle);
    else if (gp_advance(cache->domain, gp_snapshot(cache->domain)))
        cache_settle_here(cache);
    return latent_fits(bytes, false);
}

static void wake_all(void)
{
    add_relaxed(&looks_that_helped, 1);
    os_word_wake(&looks_that_helped);
}

/* Waiting gives the CPU to the reader that keeps garbage. It is a sleep, because a yield need not hand the CPU over. */
static void nap(struct throttle *throttle)
{
    uint64_t age = os_clock_ns() - throttle->began;

    throttle->pause = clamp_size(2 * throttle->pause, THROTTLE_PAUSE_MIN_NS,
                                 max_size(THROTTLE_PAUSE_MAX_NS, age / 64));
    os_sleep_ns(throttle->pause);
}

/* How long a thread sleeps until it looks for itself: the more threads sleep, the longer; but not beyond the time at
 * which it has waited for wait_max. */
static uint64_t sleep_most(const struct throttle *throttle, unsigned all)
{
    uint64_t age = os_clock_ns() - throttle->began, max = load_relaxed(&slab_wait_max);
    uint64_t most = min_size(max_size(THROTTLE_SLEEP_NS, all * (uint64_t)THROTTLE_TURN_NS), max);

    return max_size(1, age < max ? min_size(most, max - age) : most);
}

static void sleep_until_one_helped(const struct throttle *throttle, uint32_t round)
{
    unsigned all = add_relaxed(&sleepers, 1) + 1;

    os_word_wait(&looks_that_helped, round, sleep_most(throttle, all));
    sub_relaxed(&sleepers, 1);
}

/* Wakes as many as there are CPUs for, those first that slept longest. As long as they find room each wakes another. */
static void wake_some(unsigned count)
{
    add_relaxed(&looks_that_helped, 1);
    os_word_wake_some(&looks_that_helped, count);
}

/*
 * A look whether there is room, and a nap. One thread at a time looks, and wakes the others when there is: many
 * would disturb the CPUs of each other, and the readers, to find the same. But it may have lost its CPU, so a thread
 * that slept without success looks as well.
 */
static bool look_by_turns(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    uint32_t nobody = 0, round = load_acquire(&looks_that_helped);
    bool fits = latent_fits(bytes, false);

    if (fits) {
        if (throttle->slept)
            wake_some(1);
        return true;
    }
    throttle->has_turn = compare_exchange(&looking, &nobody, 1u);
    throttle->slept = !throttle->has_turn && !throttle->slept;
    if (throttle->slept) {
        sleep_until_one_helped(throttle, round);
        return false;
    }
    fits = settle_for(cache, bytes, throttle);
    if (throttle->has_turn) {
        if (!fits)
            nap(throttle);
        store_release(&looking, 0u);
    }
    if (fits)
        wake_some(2 * os_cpu_count());
    return fits;
}

/* False: in vain. */
static bool wait_for_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    do {
        if (look_by_turns(cache, bytes, throttle))
            return true;
        if (wait_has_outlasted(throttle->began)) {
            if (wait_give_up(throttle->began))
                wake_all();
            return false;
        }
    } while (wait_is_worth_it()); /* or another thread has waited in vain since */
    return false;
}

/*
 * Makes room under latent_limit, for a deferral of `bytes`; holds the caller back as long as there is none. False
 * when it may not be held back (any longer). The room is not reserved: the caller tries, and calls again with the
 * same *throttle (zero at first) when other threads took it.
 */
bool latent_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    bool first = !throttle->began, made;

    if (first)
        throttle->began = os_clock_ns();
    if (!wait_is_allowed())
        return first && latent_fits(bytes, true) && settle_at_once(cache, bytes, throttle);
    add_relaxed(&wait_counts.waits, first);
    os_event(throttle_wait, cache, 1);
    made = wait_for_room(cache, bytes, throttle);
    os_event(throttle_done, cache, (unsigned)made);
    return made;
}

/* Waits for a grace period: everything that was in a closed batch is safe then. False when the caller may not wait,
 * or waited in vain. */
bool latent_wait(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;
    uint64_t began = os_clock_ns();
    bool ended;

    if (!wait_is_allowed())
        return false;
    add_relaxed(&wait_counts.waits, 1);
    os_event(throttle_wait, cache, 1);
    ended = wait_patiently(domain, gp_snapshot(domain), began);
    if (!ended && wait_give_up(began))
        wake_all();
    os_event(throttle_done, cache, (unsigned)ended);
    return ended;
}

/*
 * Holds an allocation back that needs more memory, if it may wait: while garbage is past its limit, because of
 * deferrals that could not wait; or for a grace period when more is latent than caches may grow at. Returns whether
 * it may find something now.
 */
bool latent_throttle(struct prudence_cache *cache, os_alloc_flags flags)
{
    struct throttle throttle = {.began = 0};

    if (!os_may_block(flags))
        return false;
    if (unlikely(!latent_fits(0, false)))
        return latent_make_room(cache, 0, &throttle);
    return unlikely(latent_holds_growth()) && latent_wait(cache);
}

/* In a forked child: threads that were held back are not there. */
void throttle_fork_child(void)
{
    looking = looking_everywhere = sleepers = 0;
}
