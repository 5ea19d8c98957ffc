/* SPDX-License-Identifier: MIT */
/*
 * Misuse of slots, heads, families, epochs and nodes of tables. With the number of a case, commits
 * the misuse and ends. Without a number, prints all cases: the subject, the misuse, and words of
 * the report. Memory that is gone may be used unless check=1 keeps it. test_calls.py judges.
 */
#include "calls.h"

#include <prudence/call.h>
#include <prudence/epoch.h>
#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL SIZE_MAX

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

/* The callbacks cannot run before the end, so both heads wait. */
static void queue_twice(void)
{
    prudence_read_lock();
    prudence_call(&queued, end_queued);
    prudence_call(&other_queued, end_queued);
    prudence_call(&queued, end_queued);
    _Exit(0);
}

static struct prudence_sizes *ended_family(void)
{
    struct prudence_sizes *family = prudence_sizes_create("family", NULL);

    prudence_free(prudence_sizes_alloc(family, 100));
    prudence_sizes_destroy(family);
    return family;
}

static struct prudence_reader *record(void)
{
    domain = prudence_domain_create("domain", PRUDENCE_DOMAIN_MEMB, NULL);
    return prudence_epoch_record(domain);
}

static void unpin_twice(struct prudence_reader *self)
{
    prudence_epoch_pin(self);
    prudence_epoch_unpin(self);
    prudence_epoch_unpin(self);
}

static void pin_without_end(struct prudence_reader *self)
{
    for (unsigned i = 0; i <= PRUDENCE_NESTING_MASK; i++)
        prudence_epoch_pin(self);
}

static struct prudence_domain *ended_domain(void)
{
    record();
    prudence_domain_destroy(domain);
    return domain;
}

/* ---------------------------------------------------------------------------------------- cases */

/* A case has the subject, the misuse, words of the report, and the calls. Commits the case whose
 * number is `chosen`, or prints all cases. Returns their number. */
static size_t each_case(size_t chosen)
{
    struct prudence_hazard *slot = prudence_hazard_acquire();
    struct prudence_hazard *movable = prudence_hazard_acquire_movable();
    size_t number = 0;

#define CASE(subject, how, report, ...)                                                            \
    if (chosen == ALL)                                                                             \
        printf("%s\t%s\t%s\n", subject, how, report);                                              \
    else if (chosen == number)                                                                     \
        __VA_ARGS__;                                                                               \
    number++
    CASE("slot", "released twice by its thread", "twice", prudence_hazard_release(slot),
         prudence_hazard_release(slot));
    CASE("slot", "released by its thread, then by another", "release it once",
         prudence_hazard_release(movable), release_in_thread(movable));
    CASE("slot", "released by another thread, then by its own", "twice", release_in_thread(movable),
         prudence_hazard_release(movable), take_slots());
    CASE("slot", "released twice by other threads", "twice", release_in_thread(movable),
         release_in_thread(movable));
    CASE("slot", "not movable, released by another thread", "acquire_movable",
         release_in_thread(slot));
    CASE("slot", "names an object after its release", "after its release",
         prudence_hazard_release(slot), prudence_hazard_set(slot, &object), take_slots());
    CASE("head", "retired twice in a row", "retired before", retire(&retired), retire(&retired),
         prudence_hazard_reclaim());
    CASE("head", "retired, and again after another", "retired", retire(&retired),
         retire(&other_retired), retire(&retired), prudence_hazard_reclaim());
    CASE("head", "queued twice", "is queued already", queue_twice());
    CASE("family", "allocates after its end", "'family'",
         prudence_free(prudence_sizes_alloc(ended_family(), 100)));
    CASE("family", "allocates a block after its end", "'family'",
         prudence_free(prudence_sizes_alloc(ended_family(), 100000)));
    CASE("family", "destroyed twice", "'family'", prudence_sizes_destroy(ended_family()));
    CASE("epoch", "unpinned twice", "not pinned", unpin_twice(record()));
    CASE("epoch", "repinned without a pin", "not pinned", prudence_epoch_repin(record()));
    CASE("epoch", "pinned and never unpinned", "nested deeper", pin_without_end(record()));
    CASE("epoch", "record wanted after the domain's end", "'domain'",
         prudence_epoch_record(ended_domain()));
    CASE("epoch", "advanced after the domain's end", "'domain'",
         prudence_epoch_try_advance(ended_domain(), NULL));
    return number;
}

int main(int count, char **arguments)
{
    const char *table, *how;
    size_t number, cases;

    if (count == 2) {
        number = strtoul(arguments[1], NULL, 10);
        cases = each_case(number);
        if (number >= cases)
            node_misuse(number - cases);
        return 0;
    }
    each_case(ALL);
    for (size_t i = 0; node_case(i, &table, &how); i++)
        printf("%s\t%s\tprudence: \n", table, how);
    return 0;
}
