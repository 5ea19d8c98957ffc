/* SPDX-License-Identifier: MIT */
/*
 * Finds uses of an object without the domain that protects it: readers outside the sections of the
 * domain of the object's cache, or whose hazard slots do not name it, and callbacks that wait for a
 * grace period of another domain. Both see memory that is in use again, and no other check finds
 * them. Reports only, so a program with a reason for this goes on.
 */
#include "toolkit/callbacks/check_reader.h"

#include <prudence/rcu.h>

#include "gp/user/domain.h"
#include "guard/check.h"
#include "guard/stack_depot.h"
#include "toolkit/domains/hazard_names.h"

static bool is_of_hazards(const struct prudence_domain *domain)
{
    return domain->kind == PRUDENCE_DOMAIN_HAZARD;
}

/* Returns whether the cache waits for a section of this thread, or for a slot that names the
 * object. */
static bool is_protected(const struct slab *slab, const void *object)
{
    struct prudence_domain *domain = slab->cache->domain;
    const size_t bytes = slab_object_bytes(slab);

    if (!is_of_hazards(domain) && prudence_domain_read_lock_held(domain))
        return true;
    return domain->scheme->thread_names &&
           hazard_names_protect(slab_object(slab, slab_index(slab, object), bytes), bytes);
}

void prudence_check_reader(const void *object)
{
    const void *caller = __builtin_return_address(0);
    const struct slab *slab = check_wanted && object ? os_page_owner(object) : NULL;
    const struct prudence_domain *domain;

    if (!slab || is_protected(slab, object) || !gp_is_first_from(caller))
        return;
    domain = slab->cache->domain;
    if (is_of_hazards(domain))
        os_report(
            "reader at %p: %p of cache '%s' is read while no hazard slot of this thread names it, "
            "although the cache waits only for hazard slots (domain '%s'); call "
            "prudence_hazard_protect first",
            caller, object, slab->cache->name, domain->name);
    else
        os_report(
            "reader at %p: %p of cache '%s' is read outside of any read-side critical section of "
            "domain '%s', although the cache waits only for readers of that domain; read the "
            "object inside a section, or give the cache the domain of its readers (attr.domain)",
            caller, object, slab->cache->name, domain->name);
}

static bool covers(struct prudence_domain *domain, const struct prudence_domain *other)
{
    return domain == other || domain_has(domain, other);
}

/* Reports each cache once. Caches that the library made serve any size, so their objects may have
 * readers in any domain, and are not checked. */
void check_reader_domain(struct prudence_domain *domain, const void *head, const char *what)
{
    const struct slab *slab = os_page_owner(head);
    const struct prudence_cache *cache = slab ? slab->cache : NULL;

    if (!cache || !cache->named || covers(domain, cache->domain) || !gp_is_first_from(cache))
        return;
    os_report(
        "%s: %p of cache '%s' waits for the readers of domain '%s', but the readers of the cache "
        "are in domain '%s' (attr.domain)",
        what, head, cache->name, domain->name, cache->domain->name);
    stack_depot_print("called by:", stack_depot_here());
}
