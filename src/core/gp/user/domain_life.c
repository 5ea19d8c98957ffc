/* SPDX-License-Identifier: MIT */
/*
 * Makes and destroys domains. Each scheme has a separate file.
 *
 * Destruction takes a domain off the list first, then waits for visitors, then frees.
 *
 * Locks: readers_lock, for the list and to decide that a domain may be destroyed.
 */
#include <errno.h>

#include <prudence/epoch.h>
#include <prudence/structure.h>

#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "valid_attr.h"
#include "valid_name.h"

/* Returns NULL, and reports, if prudence_domain_create() makes no such domain. */
static const struct gp_scheme *scheme_of(const char *name, enum prudence_domain_kind kind,
                                         unsigned flags)
{
    if ((size_t)kind >= gp_schemes_count || !gp_schemes[kind])
        os_report("prudence_domain_create: domain '%s': there is no kind %d", name, (int)kind);
    else if (kind == PRUDENCE_DOMAIN_SET || kind == PRUDENCE_DOMAIN_EXTERNAL)
        os_report(
            "prudence_domain_create: domain '%s': %s domains are made by "
            "prudence_domain_create_%s",
            name, gp_schemes[kind]->name, gp_schemes[kind]->name);
    else if (!flags)
        return gp_schemes[kind];
    else if (gp_schemes[kind] == &gp_memb)
        return &gp_memb_by_callers;
    else
        os_report(
            "prudence_domain_create: domain '%s': PRUDENCE_DOMAIN_CALLERS_ADVANCE is for memb and "
            "qsbr, not for %s",
            name, gp_schemes[kind]->name);
    return NULL;
}

/* Stores the flags. Reports the attribute that is not valid. */
static bool domain_life_attributes_are_valid(const char *name,
                                             const struct prudence_domain_attr *given,
                                             unsigned *flags)
{
    static const char what[] = "prudence_domain_create";
    const struct attr_names names = {what, "domain", name, "attr", "prudence_domain_attr"};
    struct prudence_domain_attr attr;

    *flags = 0;
    if (!given)
        return true;
    if (!attr_take(&names, given, &attr, sizeof attr, sizeof attr))
        return false;
    *flags = attr.flags;
    if (!(attr.flags & ~PRUDENCE_DOMAIN_CALLERS_ADVANCE) && !attr.reserved)
        return true;
    os_report(
        "%s: domain '%s': attr->flags is 0x%x, of which 0x%x is known, and attr->reserved %u, "
        "which must be 0",
        what, name, attr.flags, PRUDENCE_DOMAIN_CALLERS_ADVANCE, attr.reserved);
    return false;
}

struct prudence_domain *prudence_domain_create(const char *name, enum prudence_domain_kind kind,
                                               const struct prudence_domain_attr *attr)
{
    bool valid = name_is_valid("prudence_domain_create", name);
    const struct gp_scheme *scheme = NULL;
    struct prudence_domain *domain;
    unsigned flags;

    if (valid && domain_life_attributes_are_valid(name, attr, &flags))
        scheme = scheme_of(name, kind, flags);
    if (!scheme) {
        errno = EINVAL;
        return NULL;
    }
    domain = domain_make(name, kind, scheme);
    if (domain && scheme->open && !scheme->open(domain)) {
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

/* Frees an unlisted domain. Needs no lock except for the readers' chunks. Remaining visitors came
 * before the domain was unlisted, and stay for wait_max at most. */
static void dissolve(struct prudence_domain *domain)
{
    while (__atomic_load_n(&domain->visitors, __ATOMIC_ACQUIRE))
        os_sleep_ns(50000);
    /* the queue's worker may still be reading the readers */
    if (domain->callbacks)
        domain_queue.release(domain->callbacks);
    if (domain->scheme->close)
        domain->scheme->close(domain);
    os_lock_take(&readers_lock);
    slots_release_chunks(domain);
    domain_bury(domain);
    os_lock_release(&readers_lock);
}

/* The reason why the domain may not be destroyed. Found under readers_lock, which threads that come
 * later take. */
enum in_the_way { NOTHING, USERS, READERS, CALLBACKS };

static enum in_the_way in_the_way(struct prudence_domain *domain)
{
    if (load_acquire(&domain->users))
        return USERS;
    if (domain->scheme->is_busy(domain))
        return READERS;
    return domain->callbacks && domain_queue.waits(domain->callbacks) ? CALLBACKS : NOTHING;
}

static int busy(const struct prudence_domain *domain, enum in_the_way what, const void *caller)
{
    static const char *const reasons[] = {
        [USERS] = "caches or sets use it",
        [READERS] = "a thread is inside a section of it, or online in it",
        [CALLBACKS] = "callbacks wait for its grace periods, or run (prudence_domain_barrier)",
    };
    unsigned users = load_relaxed(&domain->users);

    if (gp_is_first_from(caller))
        os_report("prudence_domain_destroy, called from %p: domain '%s' is not destroyed: %.0u%s%s",
                  caller, domain->name, what == USERS ? users : 0, what == USERS ? " " : "",
                  reasons[what]);
    return EBUSY;
}

enum prudence_domain_kind prudence_domain_kind_of(const struct prudence_domain *domain)
{
    return domain ? domain->kind : prudence_default.kind;
}

int prudence_domain_destroy(struct prudence_domain *domain)
{
    const void *caller = __builtin_return_address(0);
    enum in_the_way what;

    if (!domain || readers_are_lasting(domain))
        return EINVAL;
    DOMAIN_CHECK(domain);
    if (domain->scheme->is_inside && may_wait_is_inside_elsewhere(domain))
        return busy(domain, READERS, caller);
    /* otherwise a dead thread's section would be blocking */
    slots_reap(domain, true, READERS_ALL);
    os_busy_enter(); /* an unlisted set still holds its members */
    os_lock_take(&readers_lock);
    what = in_the_way(domain);
    if (what == NOTHING)
        domain_unlist(domain);
    os_lock_release(&readers_lock);
    if (what == NOTHING)
        dissolve(domain);
    os_busy_leave();
    return what == NOTHING ? 0 : busy(domain, what, caller);
}
