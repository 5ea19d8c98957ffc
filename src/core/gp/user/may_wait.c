/* SPDX-License-Identifier: MIT */
/*
 * Decides whether this thread may wait for a grace period or would wait for itself, and takes the
 * thread offline in a qsbr domain for a wait.
 *
 * Locks: readers_lock, while reading the thread's slots in domains other than the default one.
 * None is held while a foreign function is called.
 */
#include "gp/user/domain.h"
#include "gp/user/may_wait.h"
#include "gp/user/reader_exit.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"

/* Returns whether gp_leave_to_wait(leaves) takes the thread offline in `domain`. */
static bool is_left(const struct prudence_domain *domain, const struct prudence_domain *leaves)
{
    return domain->kind == PRUDENCE_DOMAIN_QSBR && leaves &&
           (domain == leaves || domain_has(leaves, domain));
}

/* Returns whether this thread's section in `domain` blocks the wait. Readers of srcu may
 * block, so their sections only hold up grace periods of their own domain. */
static bool is_in_the_way(struct prudence_domain *domain, const struct prudence_domain *leaves,
                          const struct prudence_domain *waits_for)
{
    struct reader_slot *slot = domain->phases ? NULL : readers_slot_if_any(domain);

    if (!slot || !load_relaxed(&slot->reader.word) || is_left(domain, leaves))
        return false;
    return domain->kind != PRUDENCE_DOMAIN_SRCU || !waits_for || waits_for == domain ||
           domain_has(waits_for, domain);
}

bool may_wait_is_inside_elsewhere(const struct prudence_domain *only)
{
    bool inside = false;

    for (const struct gp_part *const *part = gp_parts; *part && !inside; part++)
        inside = (*part)->is_inside && (*part)->is_inside(only);
    return inside;
}

static bool may_wait_for_sections(const struct prudence_domain *leaves,
                                  const struct prudence_domain *waits_for)
{
    struct list *item;
    bool inside = reader_self && load_relaxed(&reader_self->word);

    reader_exit_watch_late();
    if (!inside && readers_has_table()) {
        os_lock_take(&readers_lock);
        list_for_each(item, &readers_domains)
        {
            inside |=
                is_in_the_way(list_entry(item, struct prudence_domain, link), leaves, waits_for);
        }
        os_lock_release(&readers_lock);
    }
    return !inside && !may_wait_is_inside_elsewhere(waits_for);
}

bool gp_may_wait_for_sections(const struct prudence_domain *waits_for)
{
    return may_wait_for_sections(NULL, waits_for);
}

bool gp_may_wait_names_hold_up(const struct prudence_domain *waits_for)
{
    return waits_for && waits_for->scheme->thread_names && waits_for->scheme->thread_names();
}

bool gp_may_leave_and_wait(const struct prudence_domain *leaves,
                           const struct prudence_domain *waits_for)
{
    return may_wait_for_sections(leaves, waits_for) && !gp_may_wait_names_hold_up(waits_for);
}

bool gp_may_wait_for(const struct prudence_domain *waits_for)
{
    return gp_may_leave_and_wait(NULL, waits_for);
}

bool gp_may_wait(void)
{
    return gp_may_wait_for(NULL);
}

/* ------------------------------------------------------------------------------ qsbr */

/* Takes this thread offline in a qsbr domain; returns false if the thread was not online. */
static bool go_offline(struct prudence_domain *domain)
{
    struct reader_slot *slot = readers_slot_if_any(domain);

    if (domain->kind != PRUDENCE_DOMAIN_QSBR || !slot || !load_relaxed(&slot->reader.word))
        return false;
    prudence_qsbr_offline(domain);
    return true;
}

/* Takes the thread offline in the domain, or in the members of a set. Returns a bit for each where
 * the thread was online. */
uint64_t gp_leave_to_wait(struct prudence_domain *domain)
{
    struct prudence_domain *const *members;
    unsigned count = domain_members(domain, &members);
    uint64_t was_online = go_offline(domain);

    for (unsigned i = 0; i < count; i++)
        was_online |= (uint64_t)go_offline(members[i]) << i;
    return was_online;
}

void gp_return_from_wait(struct prudence_domain *domain, uint64_t was_online)
{
    struct prudence_domain *const *members;
    unsigned count = domain_members(domain, &members);

    if (!count && was_online)
        prudence_qsbr_online(domain);
    for (unsigned i = 0; i < count; i++)
        if (was_online >> i & 1)
            prudence_qsbr_online(members[i]);
}
