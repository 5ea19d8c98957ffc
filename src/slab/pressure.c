/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Garbage and memory under their limits: throttling deferrals, waiting instead of failing, emptying
 * quiet CPUs.
 *
 * Implicit waits (DESIGN, Waiting): a caller may hold a lock that a reader wants inside its
 * section; so each has a deadline, and after one has expired nobody waits again until that reader
 * has left. None is made inside a read-side critical section. The lock of the list of caches is
 * held while caches are emptied, never across a wait.
 */
#include "slab/cache.h"

#define THROTTLE_PAUSE_NS 20000
#define OWNER_PAUSE_NS    5000
#define QUIET_NS          10000000
#define DOMAINS_AT_ONCE   16

/* Between two waits of an allocation whose memory others take before it: longer each time. */
#define RECLAIM_PAUSE_MIN_NS 50000
#define RECLAIM_PAUSE_MAX_NS 10000000

uint64_t slab_wait_max = UINT64_C(500000000);
struct throttle_counts throttle_counts;

bool slab_start(void)
{
    return latent_account_start() && preflush_start();
}

/* No cache is left, and nobody calls any more. */
void slab_stop(void)
{
    preflush_stop();
    latent_account_stop();
}

/* ------------------------------------------------------------------------------ emptying a CPU */

static bool is_empty(const struct cpu_cache *cpu)
{
    return stack_count(&cpu->line) == 0 && latent_count(cpu) == 0 && !load_relaxed(&cpu->ahead);
}

/* The caller's own CPU costs no system call. */
static bool take_if_here(struct prudence_cache *cache, struct cpu_cache *cpu, const void *token)
{
    struct cpu_cache *taken;

    if (cpu->line.cpu != os_cpu_current())
        return false;
    taken = cpu_cache_take(cache, token);
    if (taken && taken != cpu)
        cpu_cache_release(taken); /* the caller was moved meanwhile */
    return taken == cpu;
}

/* What is taken out of a CPU's caches at a time. */
struct haul {
    struct prudence_cache *cache;
    bool free_ones;   /* too */
    gp_cookie cookie; /* of those that are latent */
    unsigned taken;
    void *objects[TRANSFER_MAX];
};

/* Owners are quick, unless they lost their CPU: worth a few short waits, no more. Runs `step` as the
 * owner; false when that could not be. */
static bool visit_patiently(struct cpu_cache *cpu, struct haul *haul,
                            void (*step)(struct os_percpu_line *line, void *haul))
{
    haul->taken = 0;
    if (take_if_here(haul->cache, cpu, haul)) {
        step(&cpu->line, haul);
        cpu_cache_release(cpu);
        return true;
    }
    for (unsigned tries = 0; tries < 4; tries++) {
        if (cpu_cache_visit_remote(cpu, haul, step, haul))
            return true;
        os_sleep_ns(OWNER_PAUSE_NS);
    }
    return false;
}

/* One owned step: closes the open batch, takes back what the ring reserved, and takes what a node
 * may have. */
static void take_some(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    if (!cpu->slots)
        return;
    latent_close(haul->cache, cpu);
    latent_take_back(haul->cache, cpu);
    haul->taken = latent_take_safe(haul->cache, cpu, haul->objects, TRANSFER_MAX);
    if (!haul->taken && haul->free_ones) {
        haul->taken = object_cache_take(cpu, haul->objects, TRANSFER_MAX);
        count_add(&cpu->counts.unstacked, haul->taken);
    }
}

/* The same with what is not safe yet. */
static void take_latent(struct os_percpu_line *line, void *data)
{
    struct cpu_cache *cpu = (struct cpu_cache *)line;
    struct haul *haul = data;

    latent_close(haul->cache, cpu);
    haul->taken = latent_take_oldest(haul->cache, cpu, haul->objects, TRANSFER_MAX, &haul->cookie);
}

/* Closes the CPU's open batch and returns to the nodes what is safe there, and if `free_ones` what
 * is free. Gives up when the caches are another's. Returns how many objects went. */
static size_t empty_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool free_ones)
{
    struct haul haul;
    size_t moved = 0;

    haul.cache = cache;
    haul.free_ones = free_ones;
    if (is_empty(cpu))
        return 0;
    while (visit_patiently(cpu, &haul, take_some) && haul.taken) {
        node_flush(cache, haul.objects, haul.taken);
        moved += haul.taken;
    }
    return moved;
}

static size_t empty_all_cpus(struct prudence_cache *cache, bool free_ones)
{
    size_t moved = 0;

    for (unsigned cpu = 0; cache->lines && cpu < os_cpu_count(); cpu++)
        moved += empty_cpu(cache, cpu_cache_of(cache, cpu), free_ones);
    return moved;
}

static size_t shrink_nodes(struct prudence_cache *cache, unsigned keep)
{
    size_t bytes = 0;

    for (unsigned node = 0; node < os_node_count(); node++)
        bytes += node_shrink(&cache->nodes[node], keep);
    return bytes;
}

size_t cache_shrink(struct prudence_cache *cache)
{
    empty_all_cpus(cache, true);
    return shrink_nodes(cache, 0);
}

/* Closes all batches, and brings what is safe to the nodes; what is free, too, if wanted. */
void cache_settle(struct prudence_cache *cache, bool free_ones)
{
    empty_all_cpus(cache, free_ones);
    shrink_nodes(cache, cache->free_limit);
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

static void retire_cpu_of(struct prudence_cache *cache, struct cpu_cache *cpu)
{
    struct haul haul;

    haul.cache = cache;
    empty_cpu(cache, cpu, true);
    while (cpu->slots && visit_patiently(cpu, &haul, take_latent) && haul.taken)
        node_overflow(cache, haul.objects, haul.taken, haul.cookie);
}

/* A CPU that is going for good: what is free or safe in its caches goes to the nodes, what is latent
 * to its latent slabs. */
void slab_retire_cpu(unsigned cpu)
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        if (cache->lines)
            retire_cpu_of(cache, cpu_cache_of(cache, cpu));
    }
    os_lock_release(&slab_caches_lock);
}

/*
 * Strays: objects on CPUs that have gone quiet. Called where demand would grow the cache, and in a kernel
 * by work that comes by now and then; looks at most every QUIET_NS and empties the CPUs on which nothing
 * has moved since the last look, the caller's own too. So what lies on a quiet CPU is back within two looks.
 */
bool drain_quiet_cpus(struct prudence_cache *cache)
{
    uint64_t now = os_clock_ns(), then = load_relaxed(&cache->quiet_checked_at);
    size_t moved = 0;

    if (!cache->lines || now - then < QUIET_NS ||
        !compare_exchange(&cache->quiet_checked_at, &then, now))
        return false;
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);
        uint64_t word = load_relaxed(&cpu->line.stack_word);
        uint64_t tail = load_relaxed(&cpu->line.ring_tail);
        size_t drained = 0;

        if (is_empty(cpu))
            continue;
        if (load_relaxed(&cpu->quiet_word) == word && load_relaxed(&cpu->quiet_tail) == tail)
            drained = empty_cpu(cache, cpu, true);
        store_relaxed(&cpu->quiet_word, load_relaxed(&cpu->line.stack_word));
        store_relaxed(&cpu->quiet_tail, tail);
        moved += drained;
        if (drained)
            add_relaxed(&cache->remote_drains, 1);
    }
    return moved > 0;
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

/* Garbage is that of all domains: each may be what keeps it above the limit. */
static void drive_all_domains(void)
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

/* One attempt, without waiting. This cache first: that is often enough. */
static bool settle_for(struct prudence_cache *cache, size_t bytes)
{
    settle(cache); /* closes the open batches, so that the cookie below covers them */
    gp_request(cache->domain, gp_snapshot(cache->domain));
    gp_drive(cache->domain);
    settle(cache);
    if (!latent_fits(bytes, false))
        for_all_caches(settle);
    if (!latent_fits(bytes, false)) {
        drive_all_domains();
        for_all_caches(settle);
    }
    return latent_fits(bytes, false);
}

/*
 * Makes room under latent_limit, for a deferral of `bytes`; holds the caller back as long as there
 * is none. False when it may not be held back (any longer). The room is not reserved: the caller
 * tries, and calls again with the same *deadline (0 at first) when others were faster.
 *
 * Waiting gives the reader that keeps garbage the CPU. A sleep, since a yield need not hand it over.
 */
bool latent_make_room(struct prudence_cache *cache, size_t bytes, uint64_t *deadline)
{
    bool first = !*deadline;

    if (first)
        *deadline = os_clock_ns() + load_relaxed(&slab_wait_max);
    if (!may_wait())
        return first && latent_fits(bytes, true) && settle_for(cache, bytes);
    add_relaxed(&throttle_counts.waits, first);
    while (first || os_clock_ns() < *deadline) {
        if (settle_for(cache, bytes))
            return true;
        os_sleep_ns(THROTTLE_PAUSE_NS);
        first = false;
    }
    note_expired();
    return false;
}

/* Waits for a grace period: everything that was in a closed batch is safe then. False when that may not
 * be, or was in vain. */
bool latent_wait(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;
    uint64_t deadline = os_clock_ns() + load_relaxed(&slab_wait_max);

    if (!may_wait())
        return false;
    add_relaxed(&throttle_counts.waits, 1);
    if (gp_wait(domain, gp_snapshot(domain), deadline))
        return true;
    note_expired();
    return false;
}

/*
 * Holds an allocation back that needs more memory, if it may wait: while garbage is past its limit, because
 * of deferrals that could not wait; or for a grace period when more is latent than caches may grow at.
 * Returns whether it may find something now.
 */
bool latent_throttle(struct prudence_cache *cache, os_alloc_flags flags)
{
    uint64_t deadline = 0;

    if (!os_may_block(flags))
        return false;
    if (unlikely(!latent_fits(0, false)))
        return latent_make_room(cache, 0, &deadline);
    return unlikely(latent_holds_growth()) && latent_wait(cache);
}

/* ------------------------------------------------------------------ waiting instead of failing */

static void give_back(struct prudence_cache *cache)
{
    cache_shrink(cache);
}

/* All that is free goes back, but to the cache that wants memory: what it has in its slabs will do, and pages
 * that go back may be out of its reach (a kernel keeps them in lists of each CPU). */
static void give_back_to(const struct prudence_cache *wants)
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_cache *cache = list_entry(item, struct prudence_cache, link);

        empty_all_cpus(cache, true);
        shrink_nodes(cache, cache == wants && cache->lines ? ~0u : 0);
    }
    os_lock_release(&slab_caches_lock);
}

/* Whether all of them ended one. */
static bool wait_for(struct prudence_domain **domains, unsigned count, uint64_t deadline)
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
        } else if (!gp_wait(domains[i], cookies[i], deadline)) {
            add_relaxed(&throttle_counts.expiries, 1);
            gp_note_expired(domains[i]);
            ended = false;
        }
        gp_domain_leave(domains[i]);
    }
    return ended;
}

/* Waits for one grace period of each domain, all under one deadline; whether all of them ended one. */
static bool wait_for_domains(uint64_t deadline)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0;
    unsigned count;
    bool ended = true;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        ended = wait_for(domains, count, deadline) && ended;
    } while (count == DOMAINS_AT_ONCE);
    return ended;
}

/* Others may have taken what came of the last wait: whether another one is sensible, after a pause. */
static bool may_reclaim_again(struct prudence_cache *cache, struct reclaim *reclaim)
{
    if (!reclaim->go_on || latent_bytes() < cache->slab_bytes || os_clock_ns() >= reclaim->deadline)
        return false;
    os_sleep_ns(reclaim->pause);
    reclaim->pause = min_size(2 * reclaim->pause, RECLAIM_PAUSE_MAX_NS);
    return true;
}

/*
 * Before an allocation fails (rule 9): closes the open batches of all CPUs and caches, waits for
 * one grace period, merges, shrinks everywhere. The caller then tries again, and comes back with the
 * same *reclaim (zero at first) when that is in vain. False: this was the last time, since nothing
 * more is to be expected; the next try may fail, or go as far as the OOM killer.
 */
bool pressure_reclaim(struct prudence_cache *cache, os_alloc_flags flags, struct reclaim *reclaim)
{
    if (!os_may_block(flags))
        return false;
    if (!reclaim->deadline) {
        reclaim->deadline = os_clock_ns() + load_relaxed(&slab_wait_max);
        reclaim->pause = RECLAIM_PAUSE_MIN_NS;
    } else if (!may_reclaim_again(cache, reclaim)) {
        return false;
    }
    if (slab_watch.pressure)
        slab_watch.pressure();
    give_back_to(cache);
    if (latent_bytes() > 0 && gp_may_wait()) {
        add_relaxed(&throttle_counts.pressure_waits, 1);
        add_relaxed(&cache->pressure_waits, 1);
        reclaim->go_on = wait_for_domains(reclaim->deadline);
        give_back_to(cache);
    }
    os_pages_trim();
    return true;
}

/*
 * Where memory was taken from the system: when that has become short, all caches are emptied and
 * their pages given back, before it has to kill. Nothing is held, and nothing is waited for.
 */
void pressure_relieve(void)
{
    if (likely(!os_memory_is_short()))
        return;
    if (slab_watch.pressure)
        slab_watch.pressure();
    for_all_caches(give_back);
    os_pages_trim();
}

/* By who comes by often enough, with nothing held: free pages grow older though nobody takes or
 * frees any. */
void pages_decay(void)
{
    if (os_pages_decay() && unlikely(preflush_enabled))
        os_idle_kick();
}
