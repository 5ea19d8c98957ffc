/* SPDX-License-Identifier: MIT */
/*
 * The records of domains: the default domain, the list of the others, and the parts that all kinds
 * share when a domain is made and when it ends (domain_life.c).
 *
 * The caches and sets that name a domain, and the readers inside, guard it against destruction.
 * Destruction waits for a thread that only reads the domain for a while (a visitor).
 */
#include <errno.h>
#include <string.h>

#include "base/name.h"
#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"

/* Lets the first threads read without memory. */
static struct reader_chunk first_chunk __attribute__((aligned(CACHE_LINES_APART)));

struct prudence_domain prudence_default = {
    .chunks = &first_chunk,
    .progress.completed = GP_FIRST,
    .barrier_goal = GP_FIRST,
    .asked_goal = GP_FIRST,
    .shared = {.sequence = GP_FIRST, .fenced = 1}, /* until gp_start chooses */
    .readers_fence_themselves = 1,
    .kind = PRUDENCE_DOMAIN_MEMB,
    .is_default = true,
    .scheme = &gp_memb,
    .life = DOMAIN_LIVE,
    .generation = 1,
    .name = "default",
};

static uint64_t generations = 1; /* guarded by readers_lock */

struct prudence_domain *gp_default_domain(void)
{
    return &prudence_default;
}

struct prudence_domain *prudence_default_domain(void)
{
    return &prudence_default;
}

void gp_domain_get(struct prudence_domain *domain)
{
    add_relaxed(&domain->users, 1);
}

/* Release: everything done with the domain is before a destruction. */
void gp_domain_put(struct prudence_domain *domain)
{
    __atomic_fetch_sub(&domain->users, 1, __ATOMIC_RELEASE);
}

/* The domains that this thread visits. A visit calls foreign functions, which may fork, and the
 * child has no other visits. Nested visits beyond VISITS are not recorded. */
#define VISITS 24
static __thread struct prudence_domain *visits[VISITS];
static __thread unsigned visit_count;

void domain_visit(struct prudence_domain *domain)
{
    os_busy_enter(); /* a handler that forks in between takes no lock */
    if (visit_count < VISITS)
        visits[visit_count] = domain;
    visit_count++;
    add_relaxed(&domain->visitors, 1);
    os_busy_leave();
}

/* Keeps the count from falling below 0, because a forked child does not count visits that were not
 * recorded. */
static void visitors_decrease(struct prudence_domain *domain)
{
    uint32_t visitors = load_relaxed(&domain->visitors);

    while (visitors && !compare_exchange(&domain->visitors, &visitors, visitors - 1))
        ;
}

/* Visits may end in any order. */
void gp_domain_leave(struct prudence_domain *domain)
{
    unsigned last = visit_count - 1, at = last;

    os_busy_enter();
    visitors_decrease(domain); /* release, by the compare-and-swap */
    while (at < VISITS && at > 0 && visits[at] != domain)
        at--;
    if (at < VISITS && last < VISITS)
        visits[at] = visits[last];
    visit_count = last;
    os_busy_leave();
}

void domain_visits_fork_child(void)
{
    for (unsigned i = 0; i < visit_count && i < VISITS; i++)
        visits[i]->visitors++;
}

static bool domain_visit_next(struct prudence_domain *domain, uint64_t *after, bool named)
{
    if (domain->generation <= *after || (named && !load_relaxed(&domain->users)))
        return false;
    *after = domain->generation;
    domain_visit(domain);
    return true;
}

/* The domain that a walk found last, or NULL; under readers_lock. The next call usually goes on
 * there, so a walk does not search the list from its begin each time. */
static struct prudence_domain *walked_to;

static struct list *domains_after(uint64_t after)
{
    return walked_to && walked_to->generation <= after ? &walked_to->link : &readers_domains;
}

/* Does the work of gp_domains_visit; unless `named`, also visits domains that no cache or set
 * names. */
unsigned domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after,
                       bool named)
{
    unsigned found = 0;

    if (domain_visit_next(&prudence_default, after, named))
        domains[found++] = &prudence_default;
    os_lock_take(&readers_lock);
    for (struct list *item = domains_after(*after)->next; item != &readers_domains && found < count;
         item = item->next) {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain_visit_next(domain, after, named))
            domains[found++] = walked_to = domain;
    }
    os_lock_release(&readers_lock);
    return found;
}

unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after)
{
    return domains_visit(domains, count, after, true);
}

/* ---------------------------------------------------------------------------- use after the end */

#ifdef PRUDENCE_DEBUG
bool gp_check = true;
#else
bool gp_check READ_MOSTLY = false;
#endif

/* Domains destroyed most recently while gp_check was on; guarded by readers_lock. */
#define GRAVES 64
static struct prudence_domain *graves[GRAVES];
static unsigned next_grave;

void domain_check_slow(const struct prudence_domain *domain, const char *what, const void *caller)
{
    uint32_t life = domain ? load_relaxed(&domain->life) : 0;

    if (life == DOMAIN_LIVE)
        return;
    if (life == DOMAIN_DEAD)
        os_panic("%s, called from %p: domain '%s' (%p) was destroyed", what, caller, domain->name,
                 (const void *)domain);
    os_panic("%s, called from %p: %p is not a domain", what, caller, (const void *)domain);
}

void gp_domain_check(const struct prudence_domain *domain, const char *what, const void *caller)
{
    if (unlikely(load_relaxed(&gp_check)))
        domain_check_slow(domain, what, caller);
}

/* Called under readers_lock. */
void domain_bury(struct prudence_domain *domain)
{
    store_relaxed(&domain->life, DOMAIN_DEAD);
    if (load_relaxed(&gp_check)) {
        struct prudence_domain *oldest = graves[next_grave];

        graves[next_grave] = domain;
        next_grave = (next_grave + 1) % GRAVES;
        domain = oldest;
    }
    if (domain)
        os_meta_free(domain, sizeof *domain);
}

/* ---------------------------------------------------------------------------- beginning and end */

/*
 * Numbers of domains, of which a new one gets the least that is free. The window is a bitmap of
 * those from `window_from` on; all numbers before it are in use. It moves by a walk over the list:
 * on when it is full, and back when a number before it becomes free. So to make domains takes a
 * walk for each WINDOW of them. Guarded by readers_lock.
 */
#define WINDOW 4096

static uint64_t window[WINDOW / 64];
static unsigned window_from;

static void window_move(unsigned from)
{
    struct list *item;

    window_from = from;
    memset(window, 0, sizeof window);
    list_for_each(item, &readers_domains)
    {
        unsigned index = list_entry(item, struct prudence_domain, link)->index - from;

        if (index < WINDOW)
            window[index / 64] |= UINT64_C(1) << (index % 64);
    }
}

static unsigned index_take(void)
{
    for (;; window_move(window_from + WINDOW))
        for (unsigned word = 0; word < WINDOW / 64; word++)
            if (~window[word]) {
                unsigned bit = (unsigned)__builtin_ctzll(~window[word]);

                window[word] |= UINT64_C(1) << bit;
                return window_from + word * 64 + bit;
            }
}

/* The domain that had it is off the list. */
static void index_give_back(unsigned index)
{
    if (index < window_from)
        window_move(index / WINDOW * WINDOW);
    else if (index - window_from < WINDOW)
        window[(index - window_from) / 64] &= ~(UINT64_C(1) << (index % 64));
}

/* Called under readers_lock. */
void domain_unlist(struct prudence_domain *domain)
{
    list_remove(&domain->link);
    if (walked_to == domain)
        walked_to = NULL;
    index_give_back(domain->index);
}

unsigned domain_members(const struct prudence_domain *domain,
                        struct prudence_domain *const **members)
{
    return domain->scheme->members ? domain->scheme->members(domain, members) : 0;
}

bool domain_has(const struct prudence_domain *set, const struct prudence_domain *member)
{
    struct prudence_domain *const *members;
    unsigned count = domain_members(set, &members);

    for (unsigned i = 0; i < count; i++)
        if (members[i] == member)
            return true;
    return false;
}

bool domain_any(const struct prudence_domain *domain,
                bool (*is)(const struct prudence_domain *domain))
{
    struct prudence_domain *const *members;
    unsigned count;

    if (!domain->scheme->members)
        return is(domain);
    count = domain->scheme->members(domain, &members);
    for (unsigned i = 0; i < count; i++)
        if (is(members[i]))
            return true;
    return false;
}

struct call_counts call_counts;

/* Makes a domain that no other thread knows yet; returns NULL without memory. */
struct prudence_domain *domain_make(const char *name, enum prudence_domain_kind kind,
                                    const struct gp_scheme *scheme)
{
    struct prudence_domain *domain = os_meta_alloc(sizeof *domain);

    if (!domain)
        return NULL;
    if (domain_queue.make) {
        domain->callbacks = domain_queue.make(domain);
        if (!domain->callbacks) {
            os_meta_free(domain, sizeof *domain);
            return NULL;
        }
    }
    name_copy(domain->name, sizeof domain->name, name);
    domain->kind = kind;
    domain->scheme = scheme;
    domain->life = DOMAIN_LIVE;
    domain->shared.sequence = domain->progress.completed = domain->barrier_goal =
        domain->asked_goal = GP_FIRST;
    return domain;
}

void domain_unmake(struct prudence_domain *domain)
{
    if (domain->callbacks)
        domain_queue.release(domain->callbacks);
    os_meta_free(domain, sizeof *domain);
}

void domain_publish(struct prudence_domain *domain)
{
    os_lock_take(&readers_lock);
    mode_start(domain);
    domain->index = index_take();
    domain->generation = ++generations;
    list_append(&readers_domains, &domain->link);
    os_lock_release(&readers_lock);
}

/* ------------------------------------------------------------------------------ reports */

/* Calling places whose misuse was reported. When full, other places are reported each time. */
#define PLACES 64

static const void *places[PLACES];

/* Returns true for the first caller from a place. Lock-free. */
bool gp_is_first_from(const void *place)
{
    for (unsigned i = 0; i < PLACES; i++) {
        const void *known = load_relaxed(&places[i]);

        if (!known && compare_exchange(&places[i], &known, place))
            return true;
        if (known == place)
            return false;
    }
    return true;
}
