/* SPDX-License-Identifier: MIT */
/*
 * Domains and readers at the start of the process, when options are set, at a fork, and at the end.
 *
 * From prepare to done, fork holds readers_lock, the lock of the stall hook (stall.c) and those of
 * parts (gp_parts), and has the schemes pause.
 */
#include "gp/user/domain.h"
#include "gp/user/mode.h"
#include "gp/user/process_life.h"
#include "gp/user/reader_exit.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"

/* Calls a function of all parts that have it. */
#define CALL_PARTS(function, arguments)                                                            \
    do {                                                                                           \
        for (const struct gp_part *const *part_ = gp_parts; *part_; part_++)                       \
            if ((*part_)->function)                                                                \
                (*part_)->function arguments;                                                      \
    } while (0)

static void process_life_thread_ends(bool last)
{
    readers_thread_ends(last);
    CALL_PARTS(thread_ends, (last));
}

COLD void gp_start(void)
{
    reader_exit_start(process_life_thread_ends);
    mode_start(&prudence_default);
    CALL_PARTS(follow_options, ());
}

/* Applies the mode to all domains, because the mode is an option of the process. The lock keeps new
 * domains out. */
void gp_follow_options(void)
{
    struct list *item;

    mode_follow_options(&prudence_default);
    CALL_PARTS(follow_options, ());
    os_lock_take(&readers_lock);
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme == &gp_memb || domain->scheme == &gp_memb_by_callers)
            mode_follow_options(domain);
    }
    os_lock_release(&readers_lock);
}

/* Reports sections of threads that are gone, also those that no grace period has met. */
void gp_process_ends(void)
{
    struct list *item;

    if (!readers_left_inside())
        return;
    slots_reap(&prudence_default, false, READERS_ALL);
    os_lock_take(&readers_lock);
    list_for_each(item, &readers_domains)
    {
        slots_reap(list_entry(item, struct prudence_domain, link), false, READERS_ALL);
    }
    os_lock_release(&readers_lock);
}

/* --- fork: only the forking thread lives on in the child, and its sections with it --- */

void gp_fork_prepare(void)
{
    struct list *item;

    os_lock_take_for_fork(&readers_lock);
    stall_fork_prepare();
    CALL_PARTS(fork_prepare, ());
    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme->fork_prepare)
            domain->scheme->fork_prepare(domain);
    }
}

void gp_fork_done(void)
{
    struct list *item;

    list_for_each(item, &readers_domains)
    {
        struct prudence_domain *domain = list_entry(item, struct prudence_domain, link);

        if (domain->scheme->fork_parent)
            domain->scheme->fork_parent(domain);
    }
    CALL_PARTS(fork_done, ());
    stall_fork_done();
    os_lock_release_from_fork(&readers_lock);
}

/* Restores the invariants that the copy may have broken. Other threads went on while fork copied
 * page after page, so of two of their stores the child may have only the later one. Afterwards no
 * grace period is over, or has a barrier, that has not started; drivers skip membarriers exactly if
 * readers fence; of phases, one is under way. */
static void process_life_mend(struct prudence_domain *domain)
{
    uint64_t *sequence = &domain->shared.sequence;

    if (sequence_before(*sequence, domain->progress.completed))
        *sequence = domain->progress.completed;
    if (sequence_before(*sequence, domain->barrier_goal))
        *sequence = domain->barrier_goal;
    if (domain->phases && sequence_before(domain->progress.completed, *sequence))
        domain->progress.completed = *sequence - GP_STEP;
    domain->shared.fenced = domain->readers_fence_themselves;
    domain->choosing = 0;
    domain->scan_began = 0;
    domain->furthest_behind = NULL;
    domain->parking = 0;
    domain->asked_goal = domain->progress.completed;
}

/* `whole`: this thread holds nothing of this domain, and no operation is half done. The owner of
 * the list of caches then counts again the caches that name the domain (slab/fork.c). */
static void live_on_in_child(struct prudence_domain *domain, bool whole)
{
    readers_forget_others(domain, whole);
    process_life_mend(domain);
    if (!whole)
        return;
    domain->visitors = domain->users = 0;
}

static void scheme_lives_on(struct prudence_domain *domain)
{
    if (domain->scheme->fork_child)
        domain->scheme->fork_child(domain);
}

void gp_fork_child(bool whole)
{
    struct list *item;

    live_on_in_child(&prudence_default, whole);
    readers_fork_child();
    CALL_PARTS(fork_child, (whole));
    list_for_each(item, &readers_domains)
        live_on_in_child(list_entry(item, struct prudence_domain, link), whole);
    if (!whole)
        return;
    domain_visits_fork_child();
    scheme_lives_on(&prudence_default);
    list_for_each(item, &readers_domains)
        scheme_lives_on(list_entry(item, struct prudence_domain, link));
}
