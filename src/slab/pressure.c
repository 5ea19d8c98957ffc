/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Garbage and memory under their limits: counting latent bytes, throttling deferrals, waiting
 * instead of failing, emptying quiet CPUs.
 *
 * Latent bytes are counted when a batch is closed and when it is merged, in a word a CPU that
 * overflows into a total; so the total is exact to COUNT_SLACK a CPU and open batches.
 *
 * Implicit waits (DESIGN, Waiting): a caller may hold a lock that a reader wants inside its
 * section; so each has a deadline, and after one has expired nobody waits again until that reader
 * has left. None is made inside a read-side critical section. The lock of the list of caches is
 * held while caches are emptied, never across a wait.
 */
#include "slab/cache.h"

#define COUNT_SLACK       ((int64_t)64 << 10)
#define MARGIN_BYTES      ((size_t)256 << 10)
#define THROTTLE_PAUSE_NS 20000
#define OWNER_PAUSE_NS    5000
#define QUIET_NS          10000000
#define DOMAINS_AT_ONCE   16

struct pending {
    int64_t bytes;
    char pad[CACHE_LINE - sizeof(int64_t)];
};

uint64_t slab_latent_limit = UINT64_C(32) << 20;
uint64_t slab_wait_max = UINT64_C(500000000);
struct throttle_counts throttle_counts;

static struct pending *pending;
static int64_t total, total_peak;

bool slab_start(void)
{
    pending = os_meta_alloc(os_cpu_count() * sizeof *pending);
    return pending && preflush_start();
}

void latent_account(unsigned cpu, int64_t bytes)
{
    int64_t now = add_relaxed(&pending[cpu].bytes, bytes) + bytes, peak;

    if (now < COUNT_SLACK && now > -COUNT_SLACK)
        return;
    now = exchange_relaxed(&pending[cpu].bytes, 0);
    now = add_relaxed(&total, now) + now;
    peak = load_relaxed(&total_peak);
    while (now > peak && !compare_exchange(&total_peak, &peak, now))
        ;
}

uint64_t latent_bytes(void)
{
    int64_t sum = load_relaxed(&total);

    for (unsigned cpu = 0; cpu < os_cpu_count(); cpu++)
        sum += load_relaxed(&pending[cpu].bytes);
    return sum > 0 ? (uint64_t)sum : 0;
}

uint64_t latent_bytes_peak(void)
{
    uint64_t now = latent_bytes(), peak = (uint64_t)load_relaxed(&total_peak);

    return now > peak ? now : peak;
}

/* ------------------------------------------------------------------------------ emptying a CPU */

static bool is_empty(const struct cpu_cache *cpu)
{
    return stack_count(&cpu->line) == 0 && latent_count(cpu) == 0;
}

/* Owners are quick, unless they lost their CPU: worth a few short waits, no more. */
static bool take_patiently(struct cpu_cache *cpu, const void *token)
{
    for (unsigned tries = 0; tries < 4; tries++) {
        if (cpu_cache_take_remote(cpu, token))
            return true;
        os_sleep_ns(OWNER_PAUSE_NS);
    }
    return false;
}

/* One owned step: closes the open batch, and takes what a node may have. */
static unsigned take_some(struct prudence_cache *cache, struct cpu_cache *cpu, bool free_ones,
                          void **objects)
{
    unsigned taken = 0;

    if (!take_patiently(cpu, objects))
        return 0;
    if (cpu->slots) {
        latent_close(cache, cpu);
        taken = latent_take_safe(cache, cpu, objects, TRANSFER_MAX);
        if (!taken && free_ones) {
            taken = object_cache_take(cpu, objects, TRANSFER_MAX);
            count_add(&cpu->counts.unstacked, taken);
        }
    }
    cpu_cache_release(cpu);
    return taken;
}

/* Closes the CPU's open batch and returns to the nodes what is safe there, and if `free_ones` what
 * is free. Gives up when the caches are another's. Returns how many objects went. */
static size_t empty_cpu(struct prudence_cache *cache, struct cpu_cache *cpu, bool free_ones)
{
    void *objects[TRANSFER_MAX];
    size_t moved = 0;
    unsigned taken;

    if (is_empty(cpu))
        return 0;
    while ((taken = take_some(cache, cpu, free_ones, objects))) {
        node_flush(cache, objects, taken);
        moved += taken;
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

/*
 * Strays: objects on CPUs that have gone quiet. Called where demand would grow the cache; looks at
 * most every QUIET_NS and empties the CPUs on which nothing has moved since the last look. So what
 * lies on a quiet CPU is back within two looks.
 */
bool drain_quiet_cpus(struct prudence_cache *cache)
{
    uint64_t now = os_clock_ns(), then = load_relaxed(&cache->quiet_checked_at);
    unsigned here = os_cpu_current();
    size_t moved = 0;

    if (!cache->lines || now - then < QUIET_NS ||
        !compare_exchange(&cache->quiet_checked_at, &then, now))
        return false;
    for (unsigned i = 0; i < os_cpu_count(); i++) {
        struct cpu_cache *cpu = cpu_cache_of(cache, i);
        uint64_t word = load_relaxed(&cpu->line.stack_word);
        uint64_t tail = load_relaxed(&cpu->line.ring_tail);
        size_t drained = 0;

        if (i == here || is_empty(cpu))
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
    empty_all_cpus(cache, false);
    shrink_nodes(cache, cache->free_limit);
}

static bool over_limit(void)
{
    int64_t limit = (int64_t)load_relaxed(&slab_latent_limit);

    int64_t margin = (int64_t)min_size((size_t)limit / 2, (size_t)limit / 8 + MARGIN_BYTES);

    /* Below the limit by what the total does not know of yet: open batches, COUNT_SLACK. */
    return limit && load_relaxed(&total) > limit - margin;
}

/*
 * Holds a deferral, or an allocation that needs more memory, back while garbage is over its limit.
 * Waiting gives the reader that keeps it the CPU. A sleep, since a yield need not hand the CPU over.
 */
void latent_throttle(struct prudence_cache *cache)
{
    struct prudence_domain *domain = cache->domain;
    uint64_t deadline;

    if (likely(!over_limit()) || !gp_may_wait() || !gp_worth_waiting(domain))
        return;
    add_relaxed(&throttle_counts.waits, 1);
    deadline = os_clock_ns() + load_relaxed(&slab_wait_max);
    for (;;) {
        settle(cache); /* closes the open batches, so that the cookie below covers them */
        gp_request(domain, gp_snapshot(domain));
        gp_drive(domain);
        settle(cache);
        if (over_limit())
            for_all_caches(settle);
        if (!over_limit())
            return;
        if (os_clock_ns() >= deadline)
            break;
        os_sleep_ns(THROTTLE_PAUSE_NS);
    }
    add_relaxed(&throttle_counts.expiries, 1);
    gp_note_expired(domain);
}

/* ------------------------------------------------------------------ waiting instead of failing */

static void give_back(struct prudence_cache *cache)
{
    cache_shrink(cache);
}

/* The distinct domains of all caches, held against destruction; how many. */
static unsigned domains_get(struct prudence_domain **domains)
{
    unsigned count = 0;
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_cache, link)->domain;
        unsigned i = 0;

        while (i < count && domains[i] != domain)
            i++;
        if (i < count || count == DOMAINS_AT_ONCE)
            continue;
        gp_domain_get(domain);
        domains[count++] = domain;
    }
    os_lock_release(&slab_caches_lock);
    return count;
}

/* Waits for one grace period of each domain, all under one deadline. */
static void wait_for_domains(void)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    gp_cookie cookies[DOMAINS_AT_ONCE];
    unsigned count = domains_get(domains);
    uint64_t deadline = os_clock_ns() + load_relaxed(&slab_wait_max);

    for (unsigned i = 0; i < count; i++) {
        cookies[i] = gp_snapshot(domains[i]);
        gp_request(domains[i], cookies[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        if (gp_worth_waiting(domains[i]) && !gp_wait(domains[i], cookies[i], deadline)) {
            add_relaxed(&throttle_counts.expiries, 1);
            gp_note_expired(domains[i]);
        }
        gp_domain_put(domains[i]);
    }
}

/*
 * Before an allocation fails (rule 9): closes the open batches of all CPUs and caches, waits for
 * one grace period, merges, shrinks everywhere. The caller then tries once more.
 */
void pressure_reclaim(struct prudence_cache *cache)
{
    for_all_caches(give_back);
    if (latent_bytes() > 0 && gp_may_wait()) {
        add_relaxed(&throttle_counts.pressure_waits, 1);
        add_relaxed(&cache->pressure_waits, 1);
        wait_for_domains();
        for_all_caches(give_back);
    }
    os_pages_trim();
}
