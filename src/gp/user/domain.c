/* SPDX-License-Identifier: MIT */
/*
 * Domains: made, destroyed, and their public face; the default domain.
 *
 * A domain is guarded against destruction by the caches and sets that name it and by the readers
 * inside it; a thread that only looks at it for a while (a visitor) is waited for.
 */
#include <errno.h>

#include "base/name.h"
#include "gp/user/domain.h"

/* So that the first threads to read need no memory. */
static struct reader_chunk first_chunk __attribute__((aligned(CACHE_LINES_APART)));

struct prudence_domain prudence_default = {
    .chunks = &first_chunk,
    .progress.completed = GP_FIRST,
    .barrier_goal = GP_FIRST,
    .asked_goal = GP_FIRST,
    .shared = {.sequence = GP_FIRST, .fenced = 1}, /* fenced until gp_start knows better */
    .readers_fence_themselves = 1,
    .kind = PRUDENCE_DOMAIN_MEMB,
    .scheme = &gp_memb,
    .life = DOMAIN_LIVE,
    .generation = 1,
    .name = "default",
};

static uint64_t generations = 1; /* guarded by readers_lock */

void gp_start(void)
{
    reader_exit_start();
    mode_start(&prudence_default);
}

/* All domains: a mode is an option of the process. Under the lock none is made meanwhile. */
void gp_follow_options(void)
{
    struct list *item;

    mode_follow_options(&prudence_default);
    os_lock_take(&readers_lock);
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme == &gp_memb)
            mode_follow_options(domain);
    }
    os_lock_release(&readers_lock);
}

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

/* Release: what was done with the domain is done before it may be destroyed. */
void gp_domain_put(struct prudence_domain *domain)
{
    __atomic_fetch_sub(&domain->users, 1, __ATOMIC_RELEASE);
}

/* Domains that this thread visits: foreign functions are called meanwhile, which may fork, and a child has
 * no other visits. Beyond so many, in nested calls, one is not noted. */
#define VISITS 24
static __thread struct prudence_domain *visits[VISITS];
static __thread unsigned visit_count;

static void visit_begin(struct prudence_domain *domain)
{
    os_busy_enter(); /* a handler that forks in between takes nothing */
    if (visit_count < VISITS)
        visits[visit_count] = domain;
    visit_count++;
    add_relaxed(&domain->visitors, 1);
    os_busy_leave();
}

/* Never below 0: a child does not have those that were not noted. */
static void visitors_decrease(struct prudence_domain *domain)
{
    uint32_t visitors = load_relaxed(&domain->visitors);

    while (visitors && !compare_exchange(&domain->visitors, &visitors, visitors - 1))
        ;
}

/* They are left in any order. */
static void visit_end(struct prudence_domain *domain)
{
    unsigned last = visit_count - 1, at = last;

    os_busy_enter();
    visitors_decrease(domain); /* release, as the compare-and-swap is */
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

static bool visit(struct prudence_domain *domain, uint64_t *after, bool named)
{
    if (domain->generation <= *after || (named && !load_relaxed(&domain->users)))
        return false;
    *after = domain->generation;
    visit_begin(domain);
    return true;
}

/* As gp_domains_visit; not `named`: those that nobody names as well. */
unsigned domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after,
                       bool named)
{
    unsigned found = 0;
    struct list *item;

    if (visit(&prudence_default, after, named))
        domains[found++] = &prudence_default;
    os_lock_take(&readers_lock);
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (found == count)
            break;
        if (visit(domain, after, named))
            domains[found++] = domain;
    }
    os_lock_release(&readers_lock);
    return found;
}

unsigned gp_domains_visit(struct prudence_domain **domains, unsigned count, uint64_t *after)
{
    return domains_visit(domains, count, after, true);
}

void gp_domain_leave(struct prudence_domain *domain)
{
    visit_end(domain);
}

/* ------------------------------------------------------------------------------ use after the end */

#ifdef PRUDENCE_DEBUG
bool gp_check = true;
#else
bool gp_check READ_MOSTLY = false;
#endif

/* The last ones that were destroyed while gp_check was on; guarded by readers_lock. */
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

/* Under readers_lock. */
static void bury(struct prudence_domain *domain)
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

/* ------------------------------------------------------------------------------ beginning and end */

/* The least number that no domain has. Under readers_lock. One look at the list for each so many. */
#define INDEXES_AT_ONCE 4096

static unsigned free_index(void)
{
    for (unsigned base = 0;; base += INDEXES_AT_ONCE) {
        uint64_t used[INDEXES_AT_ONCE / 64] = {0};
        struct list *item;

        list_for_each(item, &readers_domains)
        {
            unsigned index = list_entry(item, struct prudence_domain, link)->index - base;

            if (index < INDEXES_AT_ONCE)
                used[index / 64] |= UINT64_C(1) << (index % 64);
        }
        for (unsigned word = 0; word < INDEXES_AT_ONCE / 64; word++)
            if (~used[word])
                return base + word * 64 + (unsigned)__builtin_ctzll(~used[word]);
    }
}

bool domain_name_is_valid(const char *what, const char *name)
{
    if (name && *name)
        return true;
    os_report("%s: the name is %s", what, name ? "empty" : "NULL");
    return false;
}

/* Says which attribute cannot be. */
static bool attributes_are_valid(const char *name, const struct prudence_domain_attr *attr)
{
    static const char what[] = "prudence_domain_create";

    if (!attr)
        return true;
    if (attr->size != sizeof *attr)
        os_report(
            "%s: domain '%s': attr->size is %zu, not sizeof(struct prudence_domain_attr), "
            "which is %zu",
            what, name, attr->size, sizeof *attr);
    else if (attr->flags || attr->reserved)
        os_report("%s: domain '%s': attr->flags is 0x%x and attr->reserved %u, not both 0", what,
                  name, attr->flags, attr->reserved);
    else
        return true;
    return false;
}

/* Not known to anybody yet; NULL: no memory. */
struct prudence_domain *domain_make(const char *name, enum prudence_domain_kind kind,
                                    const struct gp_scheme *scheme)
{
    struct prudence_domain *domain = os_meta_alloc(sizeof *domain);

    if (!domain)
        return NULL;
    domain->callbacks = domain_queue.make(domain);
    if (!domain->callbacks) {
        os_meta_free(domain, sizeof *domain);
        return NULL;
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
    domain_queue.release(domain->callbacks);
    os_meta_free(domain, sizeof *domain);
}

void domain_publish(struct prudence_domain *domain)
{
    os_lock_take(&readers_lock);
    mode_start(domain);
    domain->index = free_index();
    domain->generation = ++generations;
    list_add_tail(&readers_domains, &domain->link);
    os_lock_release(&readers_lock);
}

/* NULL, and a message, where prudence_domain_create() makes no such domain. */
static const struct gp_scheme *scheme_of(const char *name, enum prudence_domain_kind kind)
{
    switch (kind) {
    case PRUDENCE_DOMAIN_MEMB:
    case PRUDENCE_DOMAIN_QSBR:
        return &gp_memb;
    case PRUDENCE_DOMAIN_MANUAL:
        return &gp_manual;
    case PRUDENCE_DOMAIN_SRCU:
        return &gp_srcu;
    case PRUDENCE_DOMAIN_SET:
    case PRUDENCE_DOMAIN_EXTERNAL:
        os_report(
            "prudence_domain_create: domain '%s': %s domains are made by "
            "prudence_domain_create_%s",
            name, kind == PRUDENCE_DOMAIN_SET ? "set" : "external",
            kind == PRUDENCE_DOMAIN_SET ? "set" : "external");
        return NULL;
    default:
        os_report("prudence_domain_create: domain '%s': there is no kind %d", name, (int)kind);
        return NULL;
    }
}

struct prudence_domain *prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                                               const struct prudence_domain_attr *attr)
{
    const struct gp_scheme *scheme =
        domain_name_is_valid("prudence_domain_create", name) ? scheme_of(name, kind) : NULL;
    struct prudence_domain *domain;

    if (!scheme || !attributes_are_valid(name, attr)) {
        errno = EINVAL;
        return NULL;
    }
    domain = domain_make(name, kind, scheme);
    if (domain && kind == PRUDENCE_DOMAIN_SRCU && !srcu_open(domain)) {
        domain_unmake(domain);
        domain = NULL;
    }
    if (!domain) {
        errno = ENOMEM;
        return NULL;
    }
    domain_publish(domain);
    return domain;
}

struct prudence_domain *gp_phases_make(const char *name)
{
    struct prudence_domain *domain = domain_make(name, PRUDENCE_DOMAIN_QSBR, &gp_memb);

    if (domain) {
        domain->phases = true;
        domain_publish(domain);
    }
    return domain;
}

/* What is left needs no lock except for the readers' chunks. Visitors came before it was off the list;
 * the longest they stay is wait_max. */
static void dissolve(struct prudence_domain *domain)
{
    while (__atomic_load_n(&domain->visitors, __ATOMIC_ACQUIRE))
        os_sleep_ns(50000);
    domain_queue.release(domain->callbacks); /* its worker may just be looking at the readers */
    if (domain->scheme->close)
        domain->scheme->close(domain);
    os_lock_take(&readers_lock);
    readers_release_chunks(domain);
    bury(domain);
    os_lock_release(&readers_lock);
}

/* Why the domain is not to be destroyed. Under readers_lock, which threads that come to it later want. */
enum in_the_way { NOTHING, USERS, READERS, CALLBACKS };

static enum in_the_way in_the_way(struct prudence_domain *domain)
{
    if (load_acquire(&domain->users))
        return USERS;
    if (domain->scheme->is_busy(domain))
        return READERS;
    return domain_queue.waits(domain->callbacks) ? CALLBACKS : NOTHING;
}

static int busy(const struct prudence_domain *domain, enum in_the_way what, const void *caller)
{
    static const char *const reasons[] = {
        [USERS] = "caches or sets name it",
        [READERS] = "a thread is inside a section of it, or online in it",
        [CALLBACKS] = "callbacks wait for its grace periods (prudence_domain_barrier)",
    };
    unsigned users = load_relaxed(&domain->users);

    if (gp_is_first_from(caller))
        os_report("prudence_domain_destroy, called from %p: domain '%s' is not destroyed: %.0u%s%s",
                  caller, domain->name, what == USERS ? users : 0, what == USERS ? " " : "",
                  reasons[what]);
    return EBUSY;
}

int prudence_domain_destroy(struct prudence_domain *domain)
{
    const void *caller = __builtin_return_address(0);
    enum in_the_way what;

    if (!domain || gp_is_lasting(domain))
        return EINVAL;
    DOMAIN_CHECK(domain);
    if (domain->kind == PRUDENCE_DOMAIN_EXTERNAL && external_is_inside(domain))
        return busy(domain, READERS, caller);
    readers_reap(domain, true, READERS_ALL); /* a dead thread's section keeps nobody */
    os_busy_enter();                         /* off the list it still holds its members (a set) */
    os_lock_take(&readers_lock);
    what = in_the_way(domain);
    if (what == NOTHING)
        list_remove(&domain->link);
    os_lock_release(&readers_lock);
    if (what == NOTHING)
        dissolve(domain);
    os_busy_leave();
    return what == NOTHING ? 0 : busy(domain, what, caller);
}

/* ------------------------------------------------------------------------------ grace periods */

/* Reports a wait that would never end, with the place that asked for it. */
static void report_self_wait(const char *what, const struct prudence_domain *domain, void *caller)
{
    os_report(
        "%s for domain '%s', called from %p, inside a read-side critical section of this "
        "thread (or online in a qsbr domain): it would wait for itself; leave the section, or go "
        "offline, "
        "first",
        what, domain->name, caller);
}

/* Calling places whose misuse was reported. Beyond so many, a place may be reported again. */
#define PLACES 64

static const void *places[PLACES];

/* True for the first caller from a place. Lock-free. */
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

void gp_wait_or_abort(const char *what, gp_cookie cookie, void *caller)
{
    if (!gp_may_wait_for(&prudence_default)) {
        report_self_wait(what, &prudence_default, caller);
        os_panic("aborting: the caller of %s could free memory that readers still use", what);
    }
    gp_wait(&prudence_default, cookie, 0);
}

void prudence_synchronize(void)
{
    gp_wait_or_abort("prudence_synchronize", gp_snapshot(&prudence_default),
                     __builtin_return_address(0));
}

prudence_gp_t prudence_gp_get_state(void)
{
    return prudence_domain_get_state(&prudence_default);
}

prudence_gp_t prudence_gp_start_poll(void)
{
    return prudence_domain_start_poll(&prudence_default);
}

bool prudence_gp_poll_state(prudence_gp_t cookie)
{
    return prudence_domain_poll_state(&prudence_default, cookie);
}

void prudence_gp_cond_synchronize(prudence_gp_t cookie)
{
    if (gp_poll(&prudence_default, cookie.private_value))
        gp_tell_over(&prudence_default);
    else
        gp_wait_or_abort("prudence_gp_cond_synchronize", cookie.private_value,
                         __builtin_return_address(0));
}

prudence_gp_t prudence_domain_get_state(struct prudence_domain *domain)
{
    DOMAIN_CHECK(domain);
    return (prudence_gp_t){.private_value = gp_snapshot(domain)};
}

prudence_gp_t prudence_domain_start_poll(struct prudence_domain *domain)
{
    gp_cookie cookie;

    DOMAIN_CHECK(domain);
    cookie = gp_snapshot(domain);
    gp_request(domain, cookie);
    return (prudence_gp_t){.private_value = cookie};
}

bool prudence_domain_poll_state(struct prudence_domain *domain, prudence_gp_t cookie)
{
    DOMAIN_CHECK(domain);
    if (!gp_poll(domain, cookie.private_value)) {
        gp_drive(domain); /* what is started ends; what is not, is not started here */
        if (!gp_poll(domain, cookie.private_value))
            return false;
    }
    gp_tell_over(domain);
    return true;
}

/* Takes this thread offline in a qsbr domain; false if it was. */
static bool go_offline(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);

    if (domain->kind != PRUDENCE_DOMAIN_QSBR || !slot || !load_relaxed(&slot->reader.word))
        return false;
    prudence_qsbr_offline(domain);
    return true;
}

/* ... in the domain, or in the members of a set. Returns which of them, bit by bit. */
uint64_t gp_leave_to_wait(struct prudence_domain *domain)
{
    struct prudence_domain *const *members;
    unsigned count = set_members(domain, &members);
    uint64_t was_online = go_offline(domain);

    for (unsigned i = 0; i < count; i++)
        was_online |= (uint64_t)go_offline(members[i]) << i;
    return was_online;
}

void gp_return_from_wait(struct prudence_domain *domain, uint64_t was_online)
{
    struct prudence_domain *const *members;
    unsigned count = set_members(domain, &members);

    if (!count && was_online)
        prudence_qsbr_online(domain);
    for (unsigned i = 0; i < count; i++)
        if (was_online >> i & 1)
            prudence_qsbr_online(members[i]);
}

void gp_report_self_wait_once(const char *what, const struct prudence_domain *domain, void *caller)
{
    if (gp_is_first_from(caller))
        report_self_wait(what, domain, caller);
}

int prudence_domain_synchronize(struct prudence_domain *domain)
{
    uint64_t was_online;
    bool may;

    DOMAIN_CHECK(domain);
    was_online = gp_leave_to_wait(domain);
    may = gp_may_wait_for(domain);
    if (may)
        gp_wait(domain, gp_snapshot(domain), 0);
    else
        gp_report_self_wait_once("prudence_domain_synchronize", domain,
                                 __builtin_return_address(0));
    gp_return_from_wait(domain, was_online);
    return may ? 0 : EDEADLK;
}

void prudence_manual_advance(struct prudence_domain *domain)
{
    uint64_t sequence;

    DOMAIN_CHECK(domain);
    if (domain->kind != PRUDENCE_DOMAIN_MANUAL) {
        os_report("prudence_manual_advance: domain '%s' is not manual; nothing done", domain->name);
        return;
    }
    sequence = __atomic_add_fetch(&domain->shared.sequence, GP_STEP, __ATOMIC_SEQ_CST);
    gp_tell_section_ends(domain);
    store_release(&domain->progress.completed, sequence);
    add_relaxed(&domain->grace_periods, 1);
}
