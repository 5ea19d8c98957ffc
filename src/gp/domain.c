/* SPDX-License-Identifier: MIT */
/*
 * Domains: made, destroyed, and their public face; the default domain.
 *
 * A domain is guarded against destruction by the caches that name it and the readers inside it.
 */
#include <errno.h>
#include <string.h>

#include "gp/domain.h"

struct prudence_domain_shared prudence_default_shared __attribute__((aligned(CACHE_LINE))) = {
    .sequence = GP_FIRST, .fenced = 1, /* until gp_start knows better */
};

/* So that the first threads to read need no memory. */
static struct reader_chunk first_chunk;

struct prudence_domain prudence_default = {
    .chunks = &first_chunk,
    .progress.completed = GP_FIRST,
    .barrier_goal = GP_FIRST,
    .shared = &prudence_default_shared,
    .readers_fence_themselves = 1,
    .kind = PRUDENCE_DOMAIN_MEMB,
    .name = "default",
};

static uint64_t generations; /* guarded by readers_lock */

void gp_start(void)
{
    readers_start();
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
        mode_follow_options(list_entry(item, struct prudence_domain, link));
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
    add_relaxed(&domain->caches, 1);
}

void gp_domain_put(struct prudence_domain *domain)
{
    sub_relaxed(&domain->caches, 1);
}

/* The least number that no domain has; they are few. Under readers_lock. */
static unsigned free_index(void)
{
    struct list *item;
    unsigned index = 0;

again:
    list_for_each(item, &readers_domains)
    {
        if (list_entry(item, struct prudence_domain, link)->index == index) {
            index++;
            goto again;
        }
    }
    return index;
}

static bool attributes_are_valid(const struct prudence_domain_attr *attr)
{
    return !attr || (attr->size == sizeof *attr && attr->flags == 0 && attr->reserved == 0);
}

static struct prudence_domain *make(const char *name, enum prudence_domain_kind kind, bool phases)
{
    struct prudence_domain *domain = os_meta_alloc(sizeof *domain);

    if (!domain)
        return NULL;
    strncpy(domain->name, name, sizeof domain->name - 1);
    domain->kind = kind;
    domain->phases = phases;
    domain->shared = &domain->own;
    domain->own.sequence = domain->progress.completed = domain->barrier_goal = GP_FIRST;
    os_lock_take(&readers_lock);
    mode_start(domain);
    domain->index = free_index();
    domain->generation = ++generations;
    list_add_tail(&readers_domains, &domain->link);
    os_lock_release(&readers_lock);
    return domain;
}

struct prudence_domain *prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                                               const struct prudence_domain_attr *attr)
{
    struct prudence_domain *domain;

    if (!name || !*name || (unsigned)kind > PRUDENCE_DOMAIN_MANUAL || !attributes_are_valid(attr)) {
        errno = EINVAL;
        return NULL;
    }
    domain = make(name, kind, false);
    if (!domain)
        errno = ENOMEM;
    return domain;
}

struct prudence_domain *gp_phases_make(const char *name)
{
    return make(name, PRUDENCE_DOMAIN_QSBR, true);
}

int prudence_domain_destroy(struct prudence_domain *domain)
{
    if (!domain || domain == &prudence_default)
        return EINVAL;
    os_lock_take(&readers_lock);
    if (load_relaxed(&domain->caches) || readers_any_inside(domain)) {
        os_lock_release(&readers_lock);
        return EBUSY;
    }
    list_remove(&domain->link);
    readers_release_chunks(domain);
    os_lock_release(&readers_lock);
    os_meta_free(domain, sizeof *domain);
    return 0;
}

/* ------------------------------------------------------------------------------ grace periods */

/* Reports a wait that would never end, with the place that asked for it. */
static void report_self_wait(const char *what, const struct prudence_domain *domain, void *caller)
{
    os_report(
        "%s for domain '%s', called from %p, inside a read-side critical section of this "
        "thread (or online in a qsbr domain): it would wait for itself",
        what, domain->name, caller);
}

/* Calling places whose misuse was reported. Beyond so many, a place may be reported again. */
#define PLACES 64

static const void *places[PLACES];

/* True for the first caller from a place. Lock-free. */
static bool is_first_from(const void *place)
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

static void wait_or_abort(const char *what, gp_cookie cookie, void *caller)
{
    if (!gp_may_wait()) {
        report_self_wait(what, &prudence_default, caller);
        os_panic("aborting: the caller of %s could free memory that readers still use", what);
    }
    gp_wait(&prudence_default, cookie, 0);
}

void prudence_synchronize(void)
{
    wait_or_abort("prudence_synchronize", gp_snapshot(&prudence_default),
                  __builtin_return_address(0));
}

void prudence_synchronize_expedited(void)
{
    gp_cookie cookie = gp_snapshot(&prudence_default);
    uint64_t patience = os_clock_ns() + 100000;

    if (gp_may_wait()) {
        while (!gp_poll(&prudence_default, cookie) && os_clock_ns() < patience) {
            gp_request(&prudence_default, cookie);
            gp_drive(&prudence_default);
            os_relax();
        }
    }
    wait_or_abort("prudence_synchronize_expedited", cookie, __builtin_return_address(0));
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
    if (!gp_poll(&prudence_default, cookie.private_value))
        wait_or_abort("prudence_gp_cond_synchronize", cookie.private_value,
                      __builtin_return_address(0));
}

prudence_gp_t prudence_domain_get_state(struct prudence_domain *domain)
{
    return (prudence_gp_t){.private_value = gp_snapshot(domain)};
}

prudence_gp_t prudence_domain_start_poll(struct prudence_domain *domain)
{
    gp_cookie cookie = gp_snapshot(domain);

    gp_request(domain, cookie);
    return (prudence_gp_t){.private_value = cookie};
}

bool prudence_domain_poll_state(struct prudence_domain *domain, prudence_gp_t cookie)
{
    if (gp_poll(domain, cookie.private_value))
        return true;
    gp_drive(domain); /* what is started ends; what is not, is not started here */
    return gp_poll(domain, cookie.private_value);
}

int prudence_domain_synchronize(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);
    bool online = domain->kind == PRUDENCE_DOMAIN_QSBR && slot && load_relaxed(&slot->reader.word);
    int error = 0;

    if (online)
        prudence_qsbr_offline(domain);
    if (gp_may_wait()) {
        gp_wait(domain, gp_snapshot(domain), 0);
    } else {
        if (is_first_from(__builtin_return_address(0)))
            report_self_wait("prudence_domain_synchronize", domain, __builtin_return_address(0));
        error = EDEADLK;
    }
    if (online)
        prudence_qsbr_online(domain);
    return error;
}

void prudence_manual_advance(struct prudence_domain *domain)
{
    uint64_t sequence;

    if (domain->kind != PRUDENCE_DOMAIN_MANUAL) {
        os_report("prudence_manual_advance: domain '%s' is not manual; nothing done", domain->name);
        return;
    }
    sequence = __atomic_add_fetch(&domain->shared->sequence, GP_STEP, __ATOMIC_SEQ_CST);
    store_release(&domain->progress.completed, sequence);
    add_relaxed(&domain->grace_periods, 1);
}
