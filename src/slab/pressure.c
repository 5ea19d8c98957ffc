/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Garbage and memory under their limits: throttling deferrals and growth, waiting instead of failing.
 *
 * Implicit waits (DESIGN, Waiting): a caller may hold a lock that a reader wants inside its
 * section; so each has an end, and after one was in vain nobody waits again until that reader
 * has left. None is made inside a read-side critical section. The lock of the list of caches is
 * held while caches are emptied, never across a wait.
 */
#include "base/pace.h"
#include "slab/cache.h"
#include "slab/extension.h"

#define THROTTLE_PAUSE_MIN_NS 20000
#define THROTTLE_PAUSE_MAX_NS 1000000 /* at first; then a 64th of the time that was waited */
#define THROTTLE_LOOK_NS      10000000
#define THROTTLE_SLEEP_NS     50000000 /* at least until a sleeping thread looks for itself */
#define THROTTLE_TURN_NS      4000000  /* between two of all that sleep */
#define WAITS_IN_A_ROW        20       /* times wait_max is the end, whatever is in the way */
#define PATIENCE_LOOK_NS      10000000
#define DOMAINS_AT_ONCE       16

/* Between two waits of an allocation whose memory others take before it: longer each time. */
#define RECLAIM_PAUSE_MIN_NS 50000
#define RECLAIM_PAUSE_MAX_NS 10000000

uint64_t slab_wait_max READ_MOSTLY = UINT64_C(500000000);
struct throttle_counts throttle_counts;

/* Of the threads that are held back. */
static uint32_t looking; /* one of them is at it; compare-and-swap */
static uint32_t looking_everywhere;
static uint32_t looks_that_helped; /* the others sleep on it */
static uint32_t sleepers;          /* so many */
static uint64_t looked_at;         /* ns: when one of them looked at all CPUs last */

bool slab_start(void)
{
    return latent_account_start() && budget_start() && preflush_start();
}

/* No cache is left, and nobody calls any more. */
void slab_stop(void)
{
    preflush_stop();
    budget_stop();
    latent_account_stop();
}

static void for_all_caches(void (*visit)(struct prudence_cache *cache))
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        visit(list_entry(item, struct prudence_cache, link));
    }
    os_lock_release(&slab_caches_lock);
}

/* ------------------------------------------------------------------------------------ throttling */

static void settle(struct prudence_cache *cache)
{
    cache_settle(cache, false);
}

static void take_back_here(struct prudence_cache *cache)
{
    struct cpu_cache *cpu = cache->lines ? cpu_cache_of(cache, os_cpu_current()) : NULL;

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

/* For all domains that caches name, however many: some at a time, held against destruction. Stops
 * where `visit` says false, and is false then. */
static bool for_all_domains(bool (*visit)(struct prudence_domain *domain))
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0;
    unsigned count;
    bool go_on = true;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        for (unsigned i = 0; i < count; i++) {
            go_on = go_on && visit(domains[i]);
            gp_domain_leave(domains[i]);
        }
    } while (go_on && count == DOMAINS_AT_ONCE);
    return go_on;
}

static bool drive_domain(struct prudence_domain *domain)
{
    gp_request(domain, gp_snapshot(domain));
    gp_drive(domain);
    return true;
}

/* Garbage is that of all domains: each may be what keeps it above the limit. Foreign functions may be
 * called (gp_drive), so nothing is held. */
void latent_drive_all(void)
{
    for_all_domains(drive_domain);
}

static bool may_wait(void)
{
    return for_all_domains(gp_worth_waiting) && gp_may_wait();
}

static bool note_expired_in(struct prudence_domain *domain)
{
    gp_note_expired(domain);
    return true;
}

static void note_expired(void)
{
    add_relaxed(&throttle_counts.expiries, 1);
    for_all_domains(note_expired_in);
}

/*
 * Whether all CPUs and caches are worth a look. To the one whose turn it is: if what it closed at its last one is
 * safe by now, or it is its first and no reader is in the way. To one of all, after a while: other domains may have
 * come on.
 */
static bool is_worth_a_look(const struct prudence_cache *cache, const struct throttle *throttle)
{
    if (throttle->has_turn && (throttle->looked ? gp_poll(cache->domain, throttle->cookie)
                                                : !gp_is_held_up(cache->domain)))
        return true;
    return is_time_again(&looked_at, os_clock_ns(), THROTTLE_LOOK_NS);
}

/* The batches of all CPUs are closed, and grace periods of all domains pushed on; other CPUs are disturbed. By one
 * thread at a time: it holds the lock of the list of caches, perhaps without a CPU. */
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

/*
 * Whether a section has been in the way for wait_max. A caller may hold a lock that a reader wants inside its section: that
 * section then stays. So none is waited for longer, except one whose thread has no CPU to leave it with. Sections that
 * end want no such lock, and are waited for, however many: where threads are more than CPUs, each reader in turn stays
 * until it has its CPU again.
 */
static bool a_section_stays(uint64_t began)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0, max = load_relaxed(&slab_wait_max);
    bool stays = false;
    unsigned count;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        for (unsigned i = 0; i < count; i++) {
            stays = stays || gp_outstays(domains[i], began, max);
            gp_domain_leave(domains[i]);
        }
    } while (!stays && count == DOMAINS_AT_ONCE);
    return stays;
}

static bool has_outlasted(uint64_t began)
{
    uint64_t age = os_clock_ns() - began, max = load_relaxed(&slab_wait_max);

    return age >= max && (age >= WAITS_IN_A_ROW * max || a_section_stays(began));
}

/* A wait was in vain. If a section stays nobody else waits for it either; else others were faster, again and again. */
static void give_up(uint64_t began)
{
    if (a_section_stays(began)) {
        note_expired();
        wake_all();
    } else {
        add_relaxed(&throttle_counts.expiries, 1);
    }
}

/* Waiting gives the reader that keeps garbage the CPU. A sleep, since a yield need not hand it over. */
static void nap(struct throttle *throttle)
{
    uint64_t age = os_clock_ns() - throttle->began;

    throttle->pause = clamp_size(2 * throttle->pause, THROTTLE_PAUSE_MIN_NS,
                                 max_size(THROTTLE_PAUSE_MAX_NS, age / 64));
    os_sleep_ns(throttle->pause);
}

/* Until a thread that sleeps looks for itself: the more there are, the longer, but when it has waited for wait_max. */
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

/* As many as there are CPUs for, those first who slept longest. As long as they find room each wakes another. */
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

/*
 * Makes room under latent_limit, for a deferral of `bytes`; holds the caller back as long as there
 * is none. False when it may not be held back (any longer). The room is not reserved: the caller
 * tries, and calls again with the same *throttle (zero at first) when others were faster.
 */
bool latent_make_room(struct prudence_cache *cache, size_t bytes, struct throttle *throttle)
{
    bool first = !throttle->began;

    if (first)
        throttle->began = os_clock_ns();
    if (!may_wait())
        return first && latent_fits(bytes, true) && settle_at_once(cache, bytes, throttle);
    add_relaxed(&throttle_counts.waits, first);
    do {
        if (look_by_turns(cache, bytes, throttle))
            return true;
        if (has_outlasted(throttle->began)) {
            give_up(throttle->began);
            return false;
        }
    } while (for_all_domains(gp_worth_waiting)); /* or another's wait was in vain meanwhile */
    return false;
}

static bool wait_patiently(struct prudence_domain *domain, gp_cookie cookie, uint64_t began)
{
    uint64_t deadline = began + load_relaxed(&slab_wait_max);

    while (!gp_wait(domain, cookie, deadline)) {
        if (has_outlasted(began))
            return false;
        deadline = os_clock_ns() + PATIENCE_LOOK_NS;
    }
    return true;
}

/* Waits for a grace period: everything that was in a closed batch is safe then. False when that may not
 * be, or was in vain. */
bool latent_wait(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;
    uint64_t began = os_clock_ns();

    if (!may_wait())
        return false;
    add_relaxed(&throttle_counts.waits, 1);
    if (wait_patiently(domain, gp_snapshot(domain), began))
        return true;
    give_up(began);
    return false;
}

/*
 * Holds an allocation back that needs more memory, if it may wait: while garbage is past its limit, because
 * of deferrals that could not wait; or for a grace period when more is latent than caches may grow at.
 * Returns whether it may find something now.
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

/* ------------------------------------------------------------------ waiting instead of failing */

static void give_back(struct prudence_cache *cache)
{
    cache_shrink(cache);
}

/* All that is free goes back, but to the cache that wants memory: what it has in its slabs will do, and pages
 * that go back may be out of its reach (a kernel keeps them in lists of each CPU). Returns the bytes. */
static size_t give_back_to(const struct prudence_cache *wants)
{
    struct list *item;
    size_t bytes = 0;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        bytes += cache_empty(cache, true, cache == wants && cache->lines ? ~0u : 0);
    }
    os_lock_release(&slab_caches_lock);
    return bytes;
}

/* Whether all of them ended one. */
static bool wait_for(struct prudence_domain **domains, unsigned count, uint64_t began)
{
    gp_cookie cookies[DOMAINS_AT_ONCE];
    bool ended = true;

    for (unsigned i = 0; i < count; i++) {
        cookies[i] = gp_snapshot(domains[i]);
        gp_request(domains[i], cookies[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        if (!gp_worth_waiting(domains[i])) {
            ended = false;
        } else if (!wait_patiently(domains[i], cookies[i], began)) {
            add_relaxed(&throttle_counts.expiries, 1);
            gp_note_expired(domains[i]);
            ended = false;
        }
        gp_domain_leave(domains[i]);
    }
    return ended;
}

/* Waits for one grace period of each domain, all as one wait that began then; whether all of them ended one. */
static bool wait_for_domains(uint64_t began)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0;
    unsigned count;
    bool ended = true;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        ended = wait_for(domains, count, began) && ended;
    } while (count == DOMAINS_AT_ONCE);
    return ended;
}

/* Others may have taken what came of the last wait: whether another one is sensible, after a pause. */
static bool may_reclaim_again(struct prudence_cache *cache, struct reclaim *reclaim)
{
    if (!reclaim->go_on || latent_bytes() < cache->slab_bytes ||
        os_clock_ns() - reclaim->began >= load_relaxed(&slab_wait_max))
        return false;
    os_sleep_ns(reclaim->pause);
    reclaim->pause = min_size(2 * reclaim->pause, RECLAIM_PAUSE_MAX_NS);
    return true;
}

/*
 * Before an allocation fails (rule 9): closes the open batches of all CPUs and caches, waits for
 * one grace period, merges, shrinks everywhere. The caller then tries again, and comes back with the
 * same *reclaim (zero at first) when that is in vain. False: this was the last time, since nothing
 * more is to be expected; the next try may fail, or go as far as the OOM killer. A large block's is the
 * last time at once when nothing was waited for and no page came: it can have nothing but pages.
 */
bool pressure_reclaim(struct prudence_cache *cache, os_alloc_flags flags, struct reclaim *reclaim)
{
    size_t bytes;

    if (!os_may_block(flags))
        return false;
    if (!reclaim->began) {
        reclaim->began = os_clock_ns();
        reclaim->pause = RECLAIM_PAUSE_MIN_NS;
    } else if (!may_reclaim_again(cache, reclaim)) {
        return false;
    }
    reclaim->go_on = false; /* unless something is waited for */
    extensions_pressure();
    bytes = give_back_to(cache);
    if (latent_bytes() > 0 && gp_may_wait()) {
        add_relaxed(&throttle_counts.pressure_waits, 1);
        add_relaxed(&cache->pressure_waits, 1);
        reclaim->go_on = wait_for_domains(reclaim->began);
        bytes += give_back_to(cache);
    }
    bytes += os_pages_trim();
    return cache->lines || bytes || reclaim->go_on;
}

/*
 * Where memory was taken from the system: when that has become short, all caches are emptied and
 * their pages given back, before it has to kill. Nothing is held, and nothing is waited for.
 */
void pressure_relieve(void)
{
    if (likely(!os_memory_is_short()))
        return;
    extensions_pressure();
    for_all_caches(give_back);
    os_pages_trim();
}

/* Called from paths that run often, with no lock of this layer held: what is kept grows older though nobody takes or
 * frees any. */
void pages_decay(void)
{
    bool decaying;

    tidy_come_by();
    decaying = os_pages_decay();
    if (unlikely(preflush_enabled) && (decaying || tidy_is_worth_it()))
        os_idle_kick();
}

/* The same, and with nothing held at all: foreign functions may be called. */
void come_by(void)
{
    pages_decay();
    tidy_drive();
}
