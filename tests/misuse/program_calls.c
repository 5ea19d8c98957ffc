/* SPDX-License-Identifier: MIT */
/*
 * Misuse of slots, heads, families, epochs and nodes of tables. With the number of a case, does
 * what the case says and ends; without, prints all cases: what is misused, how, and what a report
 * says. Memory that is gone may be used unless check=1 keeps it. test_calls.py judges.
 */
#include "calls.h"

#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static char object;
static struct prudence_hazard_head retired, other_retired;
static struct prudence_head queued, other_queued;
static struct prudence_domain *domain;

static void *run_release(void *slot)
{
    prudence_hazard_release(slot);
    return NULL;
}

static void release_in_thread(struct prudence_hazard *slot)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_release, slot))
        abort();
    pthread_join(thread, NULL);
}

/* Goes on as a program does that takes slots until the thread's records were all looked at. */
static void take_slots(void)
{
    struct prudence_hazard *slots[3 * PRUDENCE_HAZARDS];

    for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++)
        slots[i] = prudence_hazard_acquire();
    for (unsigned i = 0; i < sizeof slots / sizeof *slots; i++)
        prudence_hazard_release(slots[i]);
}

/* ---------------------------------------------------------------------------------------- slots */

static void release_twice(void)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();

    prudence_hazard_release(slot);
    prudence_hazard_release(slot);
}

static void release_here_then_there(void)
{
    struct prudence_hazard *slot = prudence_hazard_acquire_movable();

    prudence_hazard_release(slot);
    release_in_thread(slot);
}

static void release_there_then_here(void)
{
    struct prudence_hazard *slot = prudence_hazard_acquire_movable();

    release_in_thread(slot);
    prudence_hazard_release(slot);
    take_slots();
}

static void release_there_twice(void)
{
    struct prudence_hazard *slot = prudence_hazard_acquire_movable();

    release_in_thread(slot);
    release_in_thread(slot);
}

static void release_of_another(void)
{
    release_in_thread(prudence_hazard_acquire());
}

static void use_after_release(void)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();

    prudence_hazard_release(slot);
    prudence_hazard_set(slot, &object);
    take_slots();
}

/* ---------------------------------------------------------------------------------------- heads */

static void end_retired(struct prudence_hazard_head *head)
{
    (void)head;
}

static void end_queued(struct prudence_head *head)
{
    (void)head;
}

static void retire(struct prudence_hazard_head *head)
{
    prudence_hazard_retire(head, head, sizeof *head, end_retired);
}

static void retire_twice(void)
{
    retire(&retired);
    retire(&retired);
    prudence_hazard_reclaim();
}

static void retire_twice_apart(void)
{
    retire(&retired);
    retire(&other_retired);
    retire(&retired);
    prudence_hazard_reclaim();
}

/* The callbacks cannot run before the end, so both heads wait. */
static void queue_twice(void)
{
    prudence_read_lock();
    prudence_call(&queued, end_queued);
    prudence_call(&other_queued, end_queued);
    prudence_call(&queued, end_queued);
    _Exit(0);
}

/* ------------------------------------------------------------------------------------- families */

static struct prudence_sizes *ended_family(void)
{
    struct prudence_sizes *family = prudence_sizes_create("family", NULL);

    prudence_free(prudence_sizes_alloc(family, 100));
    prudence_sizes_destroy(family);
    return family;
}

static void allocate_after_end(void)
{
    prudence_free(prudence_sizes_alloc(ended_family(), 100));
}

static void allocate_block_after_end(void)
{
    prudence_free(prudence_sizes_alloc(ended_family(), 100000));
}

static void destroy_family_twice(void)
{
    prudence_sizes_destroy(ended_family());
}

/* --------------------------------------------------------------------------------------- epochs */

static struct prudence_reader *record(void)
{
    domain = prudence_domain_create("domain", PRUDENCE_DOMAIN_MEMB, NULL);
    return prudence_epoch_record(domain);
}

static void unpin_twice(void)
{
    struct prudence_reader *self = record();

    prudence_epoch_pin(self);
    prudence_epoch_unpin(self);
    prudence_epoch_unpin(self);
}

static void repin_unpinned(void)
{
    prudence_epoch_repin(record());
}

static void pin_without_end(void)
{
    struct prudence_reader *self = record();

    for (unsigned i = 0; i <= PRUDENCE_NESTING_MASK; i++)
        prudence_epoch_pin(self);
}

static void record_after_end(void)
{
    record();
    prudence_domain_destroy(domain);
    prudence_epoch_record(domain);
}

static void advance_after_end(void)
{
    record();
    prudence_domain_destroy(domain);
    prudence_epoch_try_advance(domain, NULL);
}

/* ---------------------------------------------------------------------------------------- cases */

static const struct {
    const char *subject, *how;
    void (*misuse)(void);
    const char *report;
} cases[] = {
    {"slot", "released twice by its thread", release_twice, "twice"},
    {"slot", "released by its thread, then by another", release_here_then_there, "release it once"},
    {"slot", "released by another thread, then by its own", release_there_then_here, "twice"},
    {"slot", "released twice by other threads", release_there_twice, "twice"},
    {"slot", "not movable, released by another thread", release_of_another, "acquire_movable"},
    {"slot", "names an object after its release", use_after_release, "after its release"},
    {"head", "retired twice in a row", retire_twice, "retired before"},
    {"head", "retired, and again after another", retire_twice_apart, "retired"},
    {"head", "queued twice", queue_twice, "is queued already"},
    {"family", "allocates after its end", allocate_after_end, "'family'"},
    {"family", "allocates a block after its end", allocate_block_after_end, "'family'"},
    {"family", "destroyed twice", destroy_family_twice, "'family'"},
    {"epoch", "unpinned twice", unpin_twice, "not pinned"},
    {"epoch", "repinned without a pin", repin_unpinned, "not pinned"},
    {"epoch", "pinned and never unpinned", pin_without_end, "nested deeper"},
    {"epoch", "record wanted after the domain's end", record_after_end, "'domain'"},
    {"epoch", "advanced after the domain's end", advance_after_end, "'domain'"},
};

int main(int count, char **arguments)
{
    const size_t cases_count = sizeof cases / sizeof *cases;
    const char *table, *how;

    if (count == 2) {
        size_t number = strtoul(arguments[1], NULL, 10);

        if (number >= cases_count)
            node_misuse(number - cases_count);
        cases[number].misuse();
        return 0;
    }
    for (size_t i = 0; i < cases_count; i++)
        printf("%s\t%s\t%s\n", cases[i].subject, cases[i].how, cases[i].report);
    for (size_t i = 0; node_case(i, &table, &how); i++)
        printf("%s\t%s\tprudence: \n", table, how);
    return 0;
}
