/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Holds back deferrals and growth until deferred bytes are under their limit (ADR 6, 34). wait.c
 * says for how long.
 *
 * The lock of the list of caches is held while caches are emptied, never across a wait.
 */
#include "slab/reclaim/throttle.h"

#include "base/pace.h"
#include "gp/gp_wait.h"
#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cpu_cache.h"
#include "slab/latent_cache.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

/* Policy: how does a deferral wait for room? */
#define THROTTLE_PAUSE_MIN_NS 20000    /* ns; first sleep, because readers may need the CPU */
#define THROTTLE_PAUSE_MAX_NS 1000000  /* ns; longest at first, later a 64th of the time waited */
#define THROTTLE_LOOK_NS      10000000 /* ns; between checks of all CPUs, for other domains */
#define THROTTLE_SLEEP_NS     50000000 /* ns; least time until a sleeping thread checks by itself */
#define THROTTLE_TURN_NS      4000000  /* ns; between two checks of all sleeping threads */

/* State shared by the threads that are held back. */
static uint32_t throttle_looking; /* a thread is checking; compare-and-swap */
static uint32_t looking_everywhere;
static uint32_t looks_that_helped;  /* the others sleep on this word */
static uint32_t sleepers;           /* number of sleeping threads */
static uint64_t throttle_looked_at; /* ns; the last check of all CPUs */

static void drain_safe(struct prudence_cache *cache)
{
    drain_cache(cache, false);
}

static void take_back_here(struct prudence_cache *cache)
{
    struct cpu_cache *cpu = cache->percpu ? cpu_cache_of(cache, os_cpu_current()) : NULL;

    if (!cpu || !load_relaxed(&cpu->ahead))
        return;
    cpu = cpu_cache_take(cache, &cpu);
    if (!cpu)
        return;
    latent_cache_take_back(cache, cpu);
    cpu_cache_release(cpu);
}

/* Returns unused reservations of this CPU's rings to the account. */
void throttle_take_back_here(void)
{
    all_caches_visit(take_back_here);
}

/*
 * Returns whether a check of all CPUs and caches is worth it. The thread whose turn it is checks if
 * the objects that it closed last time are safe by now, or if this is its first check and no reader
 * is blocking. Also, one thread checks every THROTTLE_LOOK_NS, because other domains may have made
 * progress.
 */
static bool is_worth_a_look(const struct prudence_cache *cache, const struct throttle *throttle)
{
    if (throttle->has_turn && (throttle->looked ? gp_poll(cache->domain, throttle->cookie)
                                                : !gp_is_held_up(cache->domain)))
        return true;
    return is_time_again(&throttle_looked_at, os_clock_ns(), THROTTLE_LOOK_NS);
}

/* Closes the batches of all CPUs, and drives grace periods of all domains, which disturbs other
 * CPUs. One thread does this at a time, because it holds the lock of the list of caches, and may
 * lose its CPU in that time. */
static void drain_everywhere(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    uint32_t nobody = 0;

    if (!compare_exchange(&looking_everywhere, &nobody, 1u))
        return;
    drain_safe(cache);
    throttle->cookie = gp_snapshot(cache->domain);
    throttle->looked = true;
    gp_request(cache->domain, throttle->cookie);
    gp_drive(cache->domain);
    all_caches_visit(drain_safe);
    if (!limit_fits(bytes, false)) {
        wait_drive_all();
        all_caches_visit(drain_safe);
    }
    store_release(&looking_everywhere, 0u);
}

/* Makes room for a caller that may not wait. Called if taking back unused reservations is
 * enough. */
static bool drain_at_once(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    drain_here(cache);
    if (!limit_fits(bytes, false))
        drain_everywhere(cache, bytes, throttle);
    return limit_fits(bytes, false);
}

/* Makes one attempt at room, without waiting and with as little work as possible. */
static bool drain_for_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    drain_here(cache);
    if (limit_fits(bytes, false))
        return true;
    if (is_worth_a_look(cache, throttle))
        drain_everywhere(cache, bytes, throttle);
    else if (gp_advance(cache->domain, gp_snapshot(cache->domain)))
        drain_here(cache);
    return limit_fits(bytes, false);
}

/* Has the limit in force follow the blocking readers. Returns whether there is room then. */
static bool rise_for_room(size_t bytes)
{
    return limit_may_rise() && limit_follow(wait_reader_state()) && limit_fits(bytes, false);
}

static void wake_all(void)
{
    add_relaxed(&looks_that_helped, 1);
    os_word_wake(&looks_that_helped);
}

/* Sleeps, to give the CPU to the reader that holds up objects. A yield need not hand the CPU
 * over. */
static void nap(struct throttle *throttle)
{
    uint64_t age = os_clock_ns() - throttle->began;

    throttle->pause = clamp_size(2 * throttle->pause, THROTTLE_PAUSE_MIN_NS,
                                 max_size(THROTTLE_PAUSE_MAX_NS, age / 64));
    os_sleep_ns(throttle->pause);
}

/* Returns the time that a thread sleeps until it checks by itself. The more threads sleep, the
 * longer, but the thread wakes when it has waited for wait_max. */
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

/* Wakes up to `count` sleeping threads, those that slept longest first. While they find room, each
 * wakes another. */
static void wake_some(unsigned count)
{
    add_relaxed(&looks_that_helped, 1);
    os_word_wake_some(&looks_that_helped, count);
}

/*
 * Searches for room, and naps if there is none. One thread at a time checks, and wakes the others
 * if there is room, because many would disturb each other's CPUs, and the readers, to find the
 * same. But the checking thread may have lost its CPU, so a thread that slept without success
 * checks as well.
 */
static bool look_by_turns(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    uint32_t nobody = 0, round = load_acquire(&looks_that_helped);
    bool fits = limit_fits(bytes, false);

    if (fits) {
        if (throttle->slept)
            wake_some(1);
        return true;
    }
    throttle->has_turn = compare_exchange(&throttle_looking, &nobody, 1u);
    throttle->slept = !throttle->has_turn && !throttle->slept;
    if (throttle->slept) {
        sleep_until_one_helped(throttle, round);
        return false;
    }
    fits = drain_for_room(cache, bytes, throttle) || rise_for_room(bytes);
    if (throttle->has_turn) {
        if (!fits)
            nap(throttle);
        store_release(&throttle_looking, 0u);
    }
    if (fits)
        wake_some(2 * os_cpu_count());
    return fits;
}

/* Returns false if the wait was without success. */
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
    } while (wait_is_worth_it()); /* or another thread has waited without success since */
    return false;
}

/*
 * Makes room under latent_limit for a deferral of `bytes`, and holds the caller back while there is
 * none. Returns false if the caller may not be held back (any longer). The room is not reserved:
 * the caller tries, and calls again with the same *throttle (zero at first) if other threads took
 * it.
 */
bool throttle_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    bool first = !throttle->began, made;

    if (first)
        throttle->began = os_clock_ns();
    if (!wait_is_allowed())
        return first && limit_fits(bytes, true) && drain_at_once(cache, bytes, throttle);
    add_relaxed(&wait_counts.waits, first);
    os_event(throttle_wait, cache, 1);
    made = wait_for_room(cache, bytes, throttle);
    os_event(throttle_done, cache, (unsigned)made);
    return made;
}

/* Waits for a grace period of *cookie, after which all objects of closed batches are safe, or safe
 * unless a reader names them (CACHE_POLLS_OBJECTS). Returns false if the caller may not wait, or
 * waited without success. */
bool throttle_until_safe(struct prudence_cache *cache, gp_cookie *cookie)
{
    struct prudence_domain *domain = cache->domain;
    uint64_t began = os_clock_ns();
    bool ended;

    if (!wait_is_allowed())
        return false;
    add_relaxed(&wait_counts.waits, 1);
    os_event(throttle_wait, cache, 1);
    *cookie = gp_snapshot(domain);
    ended = wait_patiently(domain, *cookie, began);
    if (!ended && wait_give_up(began))
        wake_all();
    os_event(throttle_done, cache, (unsigned)ended);
    return ended;
}

/*
 * Holds back an allocation that needs more memory, if it may wait: while deferrals that could not
 * wait keep the account past the limit, or for one grace period if more is latent than caches may
 * grow at. Returns whether a retry may find something.
 */
bool throttle_growth(struct prudence_cache *cache, os_alloc_flags flags)
{
    struct throttle throttle = {.began = 0};
    gp_cookie cookie;

    if (!os_may_block(flags))
        return false;
    if (unlikely(!limit_fits(0, false)))
        return throttle_make_room(cache, 0, &throttle);
    if (likely(!limit_holds_growth()) || !throttle_until_safe(cache, &cookie))
        return false;
    if (unlikely(cache->flags & CACHE_POLLS_OBJECTS))
        drain_here(cache);
    return true;
}

/* Runs in a forked child, which has none of the threads that were held back. */
void throttle_fork_child(void)
{
    throttle_looking = looking_everywhere = sleepers = 0;
    limit_fall();
}
