/* SPDX-License-Identifier: MIT */
/*
 * Finds uses of an object without the domain that protects it: readers outside the sections of the
 * domain of the object's cache, and callbacks that wait for a grace period of another domain. Both
 * see memory that is in use again, and no other check finds them. Reports only, so a program with a
 * reason for this goes on.
 */
#include "debug/check_reader.h"

#include <prudence/rcu.h>

#include "debug/check.h"
#include "debug/stack_depot.h"
#include "gp/user/domain.h"
#include "gp/user/set.h"

static struct prudence_cache *check_reader_cache_of(const void *object)
{
    struct slab *slab = os_page_owner(object);

    return slab ? slab->cache : NULL;
}

void prudence_check_reader(const void *object)
{
    const void *caller = __builtin_return_address(0);
    struct prudence_cache *cache = check_wanted && object ? check_reader_cache_of(object) : NULL;

    if (!cache || prudence_domain_read_lock_held(cache->domain) || !gp_is_first_from(caller))
        return;
    os_report(
        "reader at %p: %p of cache '%s' is read outside of any read-side critical section of "
        "domain '%s', although the cache waits only for readers of that domain; read the object "
        "inside a section, or give the cache the domain of its readers (attr.domain)",
        caller, object, cache->name, cache->domain->name);
}

static bool covers(struct prudence_domain *domain, const struct prudence_domain *other)
{
    return domain == other || set_has(domain, other);
}

/* Reports each cache once. Caches that the library made serve any size, so their objects may have
 * readers in any domain, and are not checked. */
void check_reader_domain(struct prudence_domain *domain, const void *head, const char *what)
{
    struct prudence_cache *cache = check_reader_cache_of(head);

    if (!cache || !cache->named || covers(domain, cache->domain) || !gp_is_first_from(cache))
        return;
    os_report(
        "%s: %p of cache '%s' waits for the readers of domain '%s', but the readers of the cache "
        "are in domain '%s' (attr.domain)",
        what, head, cache->name, domain->name, cache->domain->name);
    stack_depot_print("called by:", stack_depot_here());
}
