/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Waits for grace periods, of all domains that caches name.
 *
 * Implicit waits (ADR 6): a caller may hold a lock that a reader wants inside its section. So each
 * wait is bounded, and after one was without success no thread waits again until that reader has
 * ended. No wait starts inside a read-side critical section, or with the lock of the list of caches
 * held.
 */
#include "slab/reclaim/wait.h"

#include "gp/gp_wait.h"
#include "os/os.h"

/* Policy: how long does an implicit wait last? */
#define WAITS_IN_A_ROW   20       /* factor; on wait_max, ends a wait in any case */
#define PATIENCE_LOOK_NS 10000000 /* ns; between two checks of the time waited */
#define DOMAINS_AT_ONCE  16       /* domains; held against destruction at a time */

uint64_t slab_wait_max READ_MOSTLY = UINT64_C(500000000);
struct wait_counts wait_counts;

/* Visits all domains that caches name, some at a time, held against destruction. Stops and returns
 * false when `visit` returns false. */
static bool for_all_domains(bool (*visit)(struct prudence_domain *domain, void *mine), void *mine)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0;
    unsigned count;
    bool go_on = true;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        for (unsigned i = 0; i < count; i++) {
            go_on = go_on && visit(domains[i], mine);
            gp_domain_leave(domains[i]);
        }
    } while (go_on && count == DOMAINS_AT_ONCE);
    return go_on;
}

static bool drive_domain(struct prudence_domain *domain, void *unused)
{
    (void)unused;
    gp_request(domain, gp_snapshot(domain));
    gp_drive(domain);
    return true;
}

/* Drives grace periods of all domains, because latent objects of any may keep the account above the
 * limit. This may call foreign functions (gp_drive), so nothing is held. */
void wait_drive_all(void)
{
    for_all_domains(drive_domain, NULL);
}

/* Returns whether a wait may begin now. */
bool wait_is_allowed(void)
{
    return wait_is_worth_it() && gp_may_wait();
}

static bool is_worth_waiting(struct prudence_domain *domain, void *unused)
{
    (void)unused;
    return gp_worth_waiting(domain);
}

/* Returns whether a wait that has begun may go on, because no thread has waited without success
 * since. */
bool wait_is_worth_it(void)
{
    return for_all_domains(is_worth_waiting, NULL);
}

static bool note_worst(struct prudence_domain *domain, void *worst)
{
    enum gp_reader_state state = gp_state_of_reader(domain), *most = worst;

    *most = state > *most ? state : *most;
    return true;
}

/* Returns how the blocking readers fare: of all domains, the answer that speaks most against
 * letting more wait, because garbage of any domain may fill the limit. */
enum gp_reader_state wait_reader_state(void)
{
    enum gp_reader_state worst = GP_READER_NONE;

    for_all_domains(note_worst, &worst);
    return worst;
}

static bool note_expired_in(struct prudence_domain *domain, void *unused)
{
    (void)unused;
    gp_note_expired(domain);
    return true;
}

static bool readers_leave(struct prudence_domain *domain, void *began)
{
    return !gp_outstays(domain, *(uint64_t *)began, load_relaxed(&slab_wait_max));
}

/*
 * Returns whether a section has been blocking for wait_max. A caller may hold a lock that a
 * reader wants inside a section, which then stays. So no section is waited for longer, except one
 * whose thread has no CPU to leave with. Sections that end want no such lock, and are waited for
 * however many there are: with more threads than CPUs, each reader in turn stays until it has a CPU
 * again.
 */
static bool a_section_stays(uint64_t began)
{
    return !for_all_domains(readers_leave, &began);
}

/* Returns whether a wait that began at `began` must end. */
bool wait_has_outlasted(uint64_t began)
{
    uint64_t age = os_clock_ns() - began, max = load_relaxed(&slab_wait_max);

    return age >= max && (age >= WAITS_IN_A_ROW * max || a_section_stays(began));
}

/* Ends a wait that was without success. Returns true if a section stays, and then no other thread
 * waits for it either. If false, other threads took the room first, again and again. */
bool wait_give_up(uint64_t began)
{
    bool stays = a_section_stays(began);

    add_relaxed(&wait_counts.expiries, 1);
    if (stays)
        for_all_domains(note_expired_in, NULL);
    return stays;
}

/* Returns false if the wait was without success. In a domain whose readers name objects, a poll of
 * each comes next: no wait is for a name. */
bool wait_patiently(struct prudence_domain *domain, gp_cookie cookie, uint64_t began)
{
    uint64_t deadline = began + load_relaxed(&slab_wait_max);

    while (!gp_wait_for_sections(domain, cookie, deadline, true)) {
        if (wait_has_outlasted(began))
            return false;
        deadline = os_clock_ns() + PATIENCE_LOOK_NS;
    }
    return true;
}

/* Returns whether all domains ended a grace period. */
static bool wait_for(struct prudence_domain **domains, unsigned count, uint64_t began)
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
        } else if (!wait_patiently(domains[i], cookies[i], began)) {
            add_relaxed(&wait_counts.expiries, 1);
            gp_note_expired(domains[i]);
            ended = false;
        }
        gp_domain_leave(domains[i]);
    }
    return ended;
}

/* Waits for one grace period of each domain, all as one wait that began at `began`. Returns whether
 * all of them ended one. */
bool wait_for_domains(uint64_t began)
{
    struct prudence_domain *domains[DOMAINS_AT_ONCE];
    uint64_t after = 0;
    unsigned count;
    bool ended = true;

    do {
        count = gp_domains_visit(domains, DOMAINS_AT_ONCE, &after);
        ended = wait_for(domains, count, began) && ended;
    } while (count == DOMAINS_AT_ONCE);
    return ended;
}
