/* SPDX-License-Identifier: MIT */
/*
 * Sets of domains: an object deferred under a set is safe when it is safe in every member.
 *
 * A set has no readers, but has a sequence like any domain, so that a set's cookies are single
 * words and polling them is one load. Grace period g of a set is one cookie of each member, all
 * taken after g was started; when all of them are over, g is over.
 *
 * The argument. A closer made the fence F and found the set's sequence at s. A driver that found s
 * + 1 takes the members' cookies (a snapshot contains a full fence, and comes after F), so each
 * cookie is as if the closer had taken it, or later. So the members' own promise is the set's.
 *
 * Any number of threads drive. cookies[i] only grow, and `begun` is raised to a goal by a thread
 * that has before raised all of them to snapshots taken since finding that goal. So a thread that
 * loads `begun` and then the cookies gets cookies of that goal, or later ones. Cookies are taken
 * anew only when no grace period of the set is under way (completed = begun); otherwise steady
 * requests would keep moving them away. A driver that was delayed in between may still do so, once.
 *
 * Members of kind hazard come last, so that a reader may move from a section to names: it names
 * what it goes on to use, and leaves the section or repins. Were both read in any order, names
 * could be read before, and the section after. So the grace period g of such a set has two
 * parts. `passed` = g says that g is over in all other members; only then is a cookie of the hazard
 * members taken. The reader's name comes before the end of its section (release), and a check of
 * names that follows a load of `passed` (acquire) comes after that end. The first part goes on
 * while the second waits for a name that stays, so set_poll_objects() lets go of all that no thread
 * names.
 *
 * A set holds its members as a cache does. Members that are sets are replaced by their own members
 * when the set is made; a domain named twice counts once.
 */
#include <errno.h>
#include <string.h>

#include "gp/user/domain.h"
#include "gp/user/drive.h"
#include "toolkit/domains/hazard_slots.h"
#include "toolkit/domains/schemes.h"
#include "toolkit/domains/set.h"
#include "valid_name.h"

static unsigned set_members(const struct prudence_domain *domain,
                            struct prudence_domain *const **members)
{
    *members = domain->set->members;
    return domain->set->count;
}

static void set_hold_members(struct domain_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        gp_domain_get(set->members[i]);
}

static bool is_hazard(const struct prudence_domain *domain)
{
    return domain->kind == PRUDENCE_DOMAIN_HAZARD;
}

/* Puts members of kind hazard last. */
static void set_order_members(struct domain_set *set)
{
    struct prudence_domain *hazards[PRUDENCE_DOMAIN_SET_MAX];
    unsigned last = 0;

    for (unsigned i = 0; i < set->count; i++)
        if (is_hazard(set->members[i]))
            hazards[last++] = set->members[i];
        else
            set->members[set->sections++] = set->members[i];
    for (unsigned i = 0; i < last; i++)
        set->members[set->sections + i] = hazards[i];
}

static bool set_add_member(struct domain_set *set, struct prudence_domain *domain)
{
    for (unsigned i = 0; i < set->count; i++)
        if (set->members[i] == domain)
            return true;
    if (set->count == PRUDENCE_DOMAIN_SET_MAX)
        return false;
    set->members[set->count++] = domain;
    return true;
}

static bool add_all(struct domain_set *set, struct prudence_domain *const *domains, unsigned count)
{
    struct prudence_domain *const *inner;
    bool fits = true;

    for (unsigned i = 0; fits && i < count; i++) {
        unsigned inner_count = domain_members(domains[i], &inner);

        fits = domains[i]->kind == PRUDENCE_DOMAIN_SET ? add_all(set, inner, inner_count)
                                                       : set_add_member(set, domains[i]);
    }
    return fits;
}

static bool members_are_valid(const char *name, struct prudence_domain *const *domains,
                              unsigned count)
{
    static const char what[] = "prudence_domain_create_set";

    if (!name_is_valid(what, name))
        return false;
    if (!domains || !count) {
        os_report("%s: set '%s' has no members", what, name);
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (!domains[i]) {
            os_report("%s: set '%s': member %u is NULL", what, name, i);
            return false;
        }
        gp_domain_check(domains[i], what, __builtin_return_address(0));
    }
    return true;
}

struct prudence_domain *
prudence_domain_create_set(const char *name, struct prudence_domain *const *domains, unsigned count)
{
    struct prudence_domain *domain;
    struct domain_set *set;

    if (!members_are_valid(name, domains, count)) {
        errno = EINVAL;
        return NULL;
    }
    set = os_meta_alloc(sizeof *set);
    if (set && !add_all(set, domains, count)) {
        os_meta_free(set, sizeof *set);
        os_report("prudence_domain_create_set: set '%s' has more than %u members", name,
                  PRUDENCE_DOMAIN_SET_MAX);
        errno = EINVAL;
        return NULL;
    }
    if (set)
        set_order_members(set);
    domain = set ? domain_make(name, PRUDENCE_DOMAIN_SET,
                               set->sections < set->count ? &gp_set_with_hazards : &gp_set)
                 : NULL;
    if (!domain) {
        if (set)
            os_meta_free(set, sizeof *set);
        errno = ENOMEM;
        return NULL;
    }
    set->begun = set->passed = set->named = domain->progress.completed;
    domain->set = set;
    for (unsigned i = 0; i < set->count; i++)
        set->cookies[i].value = load_relaxed(&set->members[i]->progress.completed);
    set->barrier = set->cookies[set->count - 1];
    os_busy_enter(); /* The fork handler counts published sets only. */
    set_hold_members(set);
    domain_publish(domain);
    os_busy_leave();
    return domain;
}

/* The set is off the list, so a fork counts it no more, and finds this thread busy. */
static void set_close(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < domain->set->count; i++)
        gp_domain_put(domain->set->members[i]);
    os_meta_free(domain->set, sizeof *domain->set);
}

/* ------------------------------------------------------------------------------------- drivers */

/* Takes the cookies of the members from `first` up to `end`, then raises `begun` or `named`. */
static void set_begin(struct domain_set *set, unsigned first, unsigned end, uint64_t *begun,
                      uint64_t goal)
{
    for (unsigned i = first; i < end; i++)
        gp_drive_raise(&set->cookies[i].value, gp_snapshot(set->members[i]).value);
    gp_drive_raise(begun, goal);
}

static gp_cookie cookie_of(const struct domain_set *set, unsigned i)
{
    return (gp_cookie){load_acquire(&set->cookies[i].value)};
}

/* Drives the member's grace period and returns whether that is over. The cookie is loaded after
 * `begun`, which pairs with the raise of `begun`. */
static bool member_is_over(struct domain_set *set, unsigned i)
{
    gp_cookie cookie = cookie_of(set, i);

    if (gp_poll(set->members[i], cookie))
        return true;
    gp_request(set->members[i], cookie);
    gp_drive(set->members[i]);
    return gp_poll(set->members[i], cookie);
}

static bool members_are_over(struct domain_set *set, unsigned first, unsigned end)
{
    bool over = true;

    for (unsigned i = first; i < end; i++)
        over &= member_is_over(set, i);
    return over;
}

static void set_drive(struct prudence_domain *domain, uint64_t goal)
{
    struct domain_set *set = domain->set;
    uint64_t begun = load_acquire(&set->begun);

    add_relaxed(&domain->scans, 1);
    if (!sequence_before(load_acquire(&domain->progress.completed), begun)) {
        set_begin(set, 0, set->count, &set->begun, goal);
        begun = load_acquire(&set->begun);
    }
    if (members_are_over(set, 0, set->count))
        gp_drive_complete(domain, begun);
}

/* ------------------------------------------------------------------ sets with hazard members */

/* Drives the part of members with sections, up to `goal`. */
static void sections_drive(struct domain_set *set, uint64_t goal)
{
    uint64_t begun = load_acquire(&set->begun);

    if (!sequence_before(load_acquire(&set->passed), begun) && sequence_before(begun, goal)) {
        gp_drive_raise(&set->barrier.value, gp_snapshot(set->members[set->sections]).value);
        set_begin(set, 0, set->sections, &set->begun, goal);
        begun = load_acquire(&set->begun);
    }
    if (members_are_over(set, 0, set->sections))
        gp_drive_raise(&set->passed, begun);
}

/* Drives the part of names. Takes cookies only when none is under way, as set_drive() does. */
static void names_drive(struct prudence_domain *domain)
{
    struct domain_set *set = domain->set;
    uint64_t named = load_acquire(&set->named);

    if (!sequence_before(load_acquire(&domain->progress.completed), named)) {
        uint64_t passed = load_acquire(&set->passed);

        if (!sequence_before(named, passed))
            return;
        set_begin(set, set->sections, set->count, &set->named, passed);
        named = load_acquire(&set->named);
    }
    if (members_are_over(set, set->sections, set->count))
        gp_drive_complete(domain, named);
}

static void set_drive_in_two_parts(struct prudence_domain *domain, uint64_t goal)
{
    add_relaxed(&domain->scans, 1);
    sections_drive(domain->set, goal);
    names_drive(domain);
}

/* Grace periods of the other members are over then. */
static bool set_only_names_hold(const struct prudence_domain *domain, gp_cookie cookie)
{
    return !sequence_before(load_acquire(&domain->set->passed), cookie.value);
}

/* Names are the process's, so one hazard member answers for all. Its barrier is one that came after
 * the cookie was taken: `barrier` is loaded after `passed`. */
static unsigned set_poll_objects(struct prudence_domain *domain, gp_cookie cookie, void **objects,
                                 unsigned count, size_t size)
{
    struct domain_set *set = domain->set;
    struct prudence_domain *hazard = set->members[set->sections];

    gp_request(domain, cookie);
    sections_drive(set, load_acquire(&domain->shared.sequence));
    if (!set_only_names_hold(domain, cookie))
        return 0;
    return gp_poll_objects(hazard, (gp_cookie){load_acquire(&set->barrier.value)}, objects, count,
                           size, NULL);
}

static void set_urge(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < domain->set->count; i++)
        if (!gp_poll(domain->set->members[i], cookie_of(domain->set, i)))
            gp_drive_urge(domain->set->members[i]);
}

static void set_block(struct prudence_domain *domain)
{
    for (unsigned i = 0; i < domain->set->count; i++) {
        struct prudence_domain *member = domain->set->members[i];

        if (member->scheme->block && !gp_poll(member, cookie_of(domain->set, i)))
            member->scheme->block(member);
    }
}

static bool set_is_cheap(const struct prudence_domain *domain)
{
    for (unsigned i = 0; i < domain->set->count; i++)
        if (!gp_drive_is_cheap(domain->set->members[i]))
            return false;
    return true;
}

static struct reader_slot *set_held_up_by(const struct prudence_domain *domain)
{
    struct reader_slot *slot = NULL;

    for (unsigned i = 0; i < domain->set->count && !slot; i++)
        slot = gp_drive_held_up_by(domain->set->members[i]);
    return slot;
}

static void tell_over(const struct prudence_domain *domain)
{
    for (unsigned i = 0; i < domain->set->count; i++)
        gp_drive_tell_over(domain->set->members[i]);
}

static void note_expired(struct prudence_domain *domain)
{
    struct domain_set *set = domain->set;

    for (unsigned i = 0; i < set->count; i++)
        if (!gp_poll(set->members[i], cookie_of(set, i)))
            gp_note_expired(set->members[i]);
}

static bool worth_waiting(struct prudence_domain *domain)
{
    struct domain_set *set = domain->set;

    for (unsigned i = 0; i < set->count; i++)
        if (!gp_worth_waiting(set->members[i]))
            return false;
    return true;
}

static bool set_is_busy(const struct prudence_domain *domain)
{
    (void)domain;
    return false;
}

/* Has the cookies taken anew, because the child may have copied `begun` and the cookies at
 * different moments. Holds the members again. */
static void set_fork_child(struct prudence_domain *domain)
{
    struct domain_set *set = domain->set;

    set->begun = set->passed = set->named = domain->progress.completed;
    set_hold_members(set);
}

/* What both kinds of sets have. */
#define SET_SCHEME                                                                                 \
    .name = "set", .urge = set_urge, .block = set_block, .is_cheap = set_is_cheap,                 \
    .held_up_by = set_held_up_by, .is_busy = set_is_busy, .tell_over = tell_over,                  \
    .note_expired = note_expired, .worth_waiting = worth_waiting, .close = set_close,              \
    .members = set_members, .fork_child = set_fork_child

const struct gp_scheme gp_set = {SET_SCHEME, .drive = set_drive};

const struct gp_scheme gp_set_with_hazards = {
    SET_SCHEME, .drive = set_drive_in_two_parts, .poll_objects = set_poll_objects,
    .only_names_hold = set_only_names_hold, .thread_names = hazard_slots_thread_names};
