/* SPDX-License-Identifier: MIT */
/* Cases of grace periods, domains and callbacks: small programs, all of whose executions must
 * keep the library's promises. */
#include <string.h>

#include <prudence/epoch.h>

#include "explorer.h"
#include "toolkit/domains/hazard_slots.h"
#include "gp/user/mode.h"
#include "gp/user/parking.h"
#include "gp/user/process_life.h"
#include "gp/user/readers.h"
#include "toolkit/callbacks/callback_life.h"
#include "toolkit/callbacks/callback_wait.h"
#include "toolkit/callbacks/callback_worker.h"
#include "gp/user/domain.h"
#include "os/os.h"
#include "posix.h"

/* ---------------------------------------------------------------------- one object, its readers */

struct thing {
    uint64_t alive; /* plain, so a read that is not ordered with its end is found as a race */
};

static struct thing *shared_thing; /* atomic */
static struct prudence_domain *domain;

static void make_thing(void)
{
    shared_thing = explore_alloc(sizeof *shared_thing);
    shared_thing->alive = 1;
}

static void use_thing(void)
{
    struct thing *thing = load_acquire(&shared_thing);

    if (thing)
        explore_assert(thing->alive);
}

/* Unlinks the object, so that no new reader finds it. */
static struct thing *unlink_thing(void)
{
    struct thing *thing = load_relaxed(&shared_thing);

    store_relaxed(&shared_thing, (struct thing *)NULL);
    return thing;
}

static void end_thing(struct thing *thing)
{
    explore_note();
    explore_free(thing, sizeof *thing);
}

/* --------------------------------------------------------------------------- the default domain */

static void start(void)
{
    posix_membarrier_start(true);
    gp_start();
    prudence_default.chosen_at = explore_clock();
    domain = &prudence_default;
    make_thing();
}

static void start_fenced(void)
{
    gp_reader_mode = READER_MODE_FENCED;
    start();
}

static void reads(void *unused)
{
    (void)unused;
    prudence_read_lock();
    use_thing();
    prudence_read_unlock();
}

/* Registers first, because a thread's first entry is not the inline one. */
static void reads_registered(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    reads(unused);
}

static void reads_twice(void *unused)
{
    reads(unused);
    reads(unused);
}

static void frees(void *unused)
{
    struct thing *thing = unlink_thing();

    (void)unused;
    gp_wait(domain, gp_snapshot(domain), 0);
    end_thing(thing);
}

/* Requests a grace period and drives it. */
static void starts_and_drives(void *unused)
{
    (void)unused;
    gp_request(domain, gp_snapshot(domain));
    gp_drive(domain);
}

/* Drives grace periods that others request. */
static void drives(void *unused)
{
    (void)unused;
    gp_drive(domain);
}

CASE("one-driver", one_driver, 4, 5)
{
    start();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
}

CASE("one-driver-two-sections", one_driver_two_sections, 3, 4)
{
    start();
    explore_thread(reads_twice, NULL);
    explore_thread(frees, NULL);
}

CASE("one-driver-fenced", one_driver_fenced, 4, 5)
{
    start_fenced();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
}

CASE("inline-reader", inline_reader, 3, 4)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(frees, NULL);
}

CASE("inline-reader-fenced", inline_reader_fenced, 3, 4)
{
    start_fenced();
    explore_thread(reads_registered, NULL);
    explore_thread(frees, NULL);
}

CASE("two-drivers", two_drivers, 2, 3)
{
    start();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

CASE("two-drivers-one-goal", two_drivers_one_goal, 2, 4)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(frees, NULL);
    explore_thread(drives, NULL);
}

CASE("two-drivers-fenced", two_drivers_fenced, 2, 3)
{
    start_fenced();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

/* ------------------------------------------------------------------------------------- at once */

/* Tries once with nothing to free, so that a grace period that is over at once must have begun;
 * then frees, if the second attempt or a poll says that the grace period is over. */
static void frees_at_once(void *unused)
{
    struct thing *thing;
    gp_cookie cookie;

    (void)unused;
    gp_try(domain, gp_snapshot(domain), 0);
    thing = unlink_thing();
    cookie = gp_snapshot(domain);
    if (gp_poll(domain, cookie) || gp_try(domain, cookie, 0) == GP_OVER)
        end_thing(thing);
}

CASE("at-once", at_once, 3, 4)
{
    start();
    domain->tried_on = 1;
    explore_thread(reads_registered, NULL);
    explore_thread(frees_at_once, NULL);
}

CASE("at-once-fenced", at_once_fenced, 3, 4)
{
    start_fenced();
    domain->tried_on = 1;
    explore_thread(reads_registered, NULL);
    explore_thread(frees_at_once, NULL);
}

CASE("at-once-with-a-driver", at_once_with_a_driver, 2, 3)
{
    at_once();
    explore_thread(starts_and_drives, NULL);
}

static void tries(void *unused)
{
    (void)unused;
    gp_try(domain, gp_snapshot(domain), 0);
}

/* A grace period that ends at once also counts for another thread. */
CASE("at-once-for-another", at_once_for_another, 2, 3)
{
    start();
    domain->tried_on = 1;
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
    explore_thread(tries, NULL);
}

/* ----------------------------------------------------------------------------- modes of readers */

static void switches_to_fenced(void *unused)
{
    (void)unused;
    store_relaxed(&gp_reader_mode, READER_MODE_FENCED);
    mode_follow_options(domain);
}

static void switches_to_free(void *unused)
{
    (void)unused;
    store_relaxed(&gp_reader_mode, READER_MODE_FREE);
    mode_follow_options(domain);
}

CASE("to-fenced", to_fenced, 2, 3)
{
    start();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
    explore_thread(switches_to_fenced, NULL);
}

CASE("inline-reader-to-fenced", inline_reader_to_fenced, 2, 3)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(frees, NULL);
    explore_thread(switches_to_fenced, NULL);
}

CASE("at-once-to-free", at_once_to_free, 2, 3)
{
    at_once_fenced();
    explore_thread(switches_to_free, NULL);
}

CASE("to-free", to_free, 2, 3)
{
    start_fenced();
    explore_thread(reads, NULL);
    explore_thread(frees, NULL);
    explore_thread(switches_to_free, NULL);
}

CASE("inline-reader-to-free", inline_reader_to_free, 2, 3)
{
    start_fenced();
    explore_thread(reads_registered, NULL);
    explore_thread(frees, NULL);
    explore_thread(switches_to_free, NULL);
}

/* ---------------------------------------------------------------------- readers that are parked */

static void parks(void *unused)
{
    (void)unused;
    store_relaxed(&prudence_default.park_after, (uint64_t)0);
    parking_after_scan(domain, 1u << 20);
}

/* Parks after a first entry, because the first round spares a thread that has just arrived. */
static void reads_spared(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    parks(unused);
    reads(unused);
}

static void parks_twice(void *unused)
{
    parks(unused);
    parks(unused);
}

static void parks_and_frees(void *unused)
{
    parks(unused);
    parks(unused);
    frees(unused);
}

CASE("parks", parked_while_it_reads, 3, 4)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(parks_and_frees, NULL);
}

CASE("parks-fenced", parked_while_it_reads_fenced, 2, 3)
{
    start_fenced();
    explore_thread(reads_spared, NULL);
    explore_thread(parks, NULL);
    explore_thread(frees, NULL);
}

CASE("parks-by-another", parked_by_another, 2, 3)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(parks_twice, NULL);
    explore_thread(frees, NULL);
}

static void parked_and_switched(void *unused)
{
    parks_twice(unused);
    switches_to_fenced(unused);
    frees(unused);
}

CASE("parks-to-fenced", parked_to_fenced, 2, 3)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(parked_and_switched, NULL);
}

CASE("parks-two-switches", parked_to_fenced_by_another, 2, 3)
{
    start();
    explore_thread(reads_registered, NULL);
    explore_thread(parked_and_switched, NULL);
    explore_thread(switches_to_free, NULL);
}

/* -------------------------------------------------------------- readers that are asked to fence */

/* Asks twice, and frees if the grace period is over at the second time; between the two a reader
 * may answer. */
static void frees_when_answered(void *unused)
{
    struct thing *thing = unlink_thing();
    gp_cookie cookie = gp_snapshot(domain);

    (void)unused;
    gp_try(domain, cookie, 0);
    if (gp_poll(domain, cookie) || gp_try(domain, cookie, 0) == GP_OVER)
        end_thing(thing);
}

/* Answers inside a section that has found the object. */
static void reads_and_answers(void *unused)
{
    struct thing *thing;

    (void)unused;
    prudence_read_lock();
    prudence_read_unlock();
    prudence_read_lock();
    thing = load_acquire(&shared_thing);
    prudence_read_lock();
    prudence_read_unlock();
    if (thing)
        explore_assert(thing->alive);
    prudence_read_unlock();
}

static void reads_and_comes_again(void *unused)
{
    reads_registered(unused);
    prudence_read_lock();
    prudence_read_unlock();
}

/* Allows the question: the caller may not try at once, and no delay remains. */
static void may_be_asked(void)
{
    domain->tried_on = 2;
    domain->asked_at = explore_clock() - 1000000000;
}

CASE("asked", asked, 3, 4)
{
    start();
    may_be_asked();
    explore_thread(reads_and_comes_again, NULL);
    explore_thread(frees_when_answered, NULL);
}

CASE("asked-inside", asked_inside, 3, 4)
{
    start();
    may_be_asked();
    explore_thread(reads_and_answers, NULL);
    explore_thread(frees_when_answered, NULL);
}

CASE("asked-and-parked", asked_and_parked, 2, 3)
{
    asked();
    explore_thread(parks, NULL);
}

static void asks_and_frees(void *unused)
{
    gp_try(domain, gp_snapshot(domain), 0);
    frees(unused);
}

CASE("asked-and-driven", asked_and_driven, 3, 4)
{
    start();
    may_be_asked();
    explore_thread(reads_and_comes_again, NULL);
    explore_thread(asks_and_frees, NULL);
}

CASE("asked-to-fenced", asked_to_fenced, 2, 3)
{
    asked();
    explore_thread(switches_to_fenced, NULL);
}

CASE("asked-to-free", asked_to_free, 2, 3)
{
    start_fenced();
    may_be_asked();
    explore_thread(reads_and_comes_again, NULL);
    explore_thread(frees_when_answered, NULL);
    explore_thread(switches_to_free, NULL);
}

/* ----------------------------------------------------------------------- other kinds of domains */

static void make_domain(enum prudence_domain_kind kind)
{
    start();
    domain = prudence_domain_create("explored", kind, NULL);
    domain->chosen_at = explore_clock();
}

static void reads_in_domain(void *unused)
{
    (void)unused;
    prudence_domain_read_lock(domain);
    use_thing();
    prudence_domain_read_unlock(domain);
}

CASE("own-domain", own_domain, 3, 4)
{
    make_domain(PRUDENCE_DOMAIN_MEMB);
    explore_thread(reads_in_domain, NULL);
    explore_thread(frees, NULL);
}

CASE("srcu", srcu, 1, 3)
{
    make_domain(PRUDENCE_DOMAIN_SRCU);
    explore_thread(reads_in_domain, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

static void is_online(void *unused)
{
    (void)unused;
    prudence_qsbr_online(domain);
    use_thing();
    prudence_qsbr_quiescent(domain);
    use_thing();
    prudence_qsbr_offline(domain);
}

CASE("qsbr", qsbr, 1, 3)
{
    make_domain(PRUDENCE_DOMAIN_QSBR);
    explore_thread(is_online, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

/* ------------------------------------------------------------------------------ hazard pointers */

static void protects(void *unused)
{
    struct prudence_hazard *hazard = prudence_hazard_acquire();
    const struct thing *thing = prudence_hazard_protect(hazard, (void **)&shared_thing);

    (void)unused;
    if (thing)
        explore_assert(thing->alive);
    prudence_hazard_release(hazard);
}

/* Claims first, because a claim fences. */
static void protects_registered(void *unused)
{
    prudence_hazard_release(prudence_hazard_acquire());
    protects(unused);
}

/* Detaches and polls the object, and ends it if no slot names it. */
static void polls(void *unused)
{
    struct thing *thing = unlink_thing();
    void *object = thing;

    (void)unused;
    if (gp_poll_objects(domain, gp_snapshot(domain), &object, 1, sizeof *thing, NULL))
        end_thing(thing);
}

static void hazards_to_fenced(void *unused)
{
    (void)unused;
    gp_reader_mode = READER_MODE_FENCED;
    hazard_slots_follow_options();
}

static void hazards_to_free(void *unused)
{
    (void)unused;
    gp_reader_mode = READER_MODE_FREE;
    hazard_slots_follow_options();
}

CASE("hazard-polled", hazard_polled, 2, 3)
{
    make_domain(PRUDENCE_DOMAIN_HAZARD);
    explore_thread(protects_registered, NULL);
    explore_thread(polls, NULL);
}

/* Protects the object by the lower slot of a row, has the upper one take over, and uses it. */
static void moves_up(void *unused)
{
    struct prudence_hazard *row = prudence_hazard_acquire_row(2);
    const struct thing *thing = prudence_hazard_protect(row, (void **)&shared_thing);

    (void)unused;
    if (thing) {
        prudence_hazard_set(row + 1, thing);
        prudence_hazard_reset(row);
        explore_assert(thing->alive);
    }
    prudence_hazard_release(row + 1);
    prudence_hazard_release(row);
}

CASE("hazard-moved-up", hazard_moved_up, 2, 3)
{
    make_domain(PRUDENCE_DOMAIN_HAZARD);
    explore_thread(moves_up, NULL);
    explore_thread(polls, NULL);
}

CASE("hazard-followed-up", hazard_followed_up, 2, 3)
{
    make_domain(PRUDENCE_DOMAIN_HAZARD);
    explore_thread(moves_up, NULL);
    explore_thread(frees, NULL);
}

CASE("hazard-claimed", hazard_claimed, 2, 2)
{
    make_domain(PRUDENCE_DOMAIN_HAZARD);
    explore_thread(protects, NULL);
    explore_thread(polls, NULL);
    explore_thread(starts_and_drives, NULL);
}

CASE("hazard-polled-fenced", hazard_polled_fenced, 2, 3)
{
    gp_reader_mode = READER_MODE_FENCED;
    hazard_polled();
}

CASE("hazard-grace-period", hazard_grace_period, 2, 3)
{
    make_domain(PRUDENCE_DOMAIN_HAZARD);
    explore_thread(protects_registered, NULL);
    explore_thread(frees, NULL);
}

CASE("hazard-to-fenced", hazard_to_fenced, 2, 2)
{
    hazard_polled();
    explore_thread(hazards_to_fenced, NULL);
}

CASE("hazard-to-free", hazard_to_free, 2, 2)
{
    hazard_polled_fenced();
    explore_thread(hazards_to_free, NULL);
}

/* Pins once, uses what it finds, moves to the newest epoch, and does so again. */
static void moves_its_pin(void *unused)
{
    struct prudence_reader *self = prudence_epoch_record(domain);

    (void)unused;
    prudence_epoch_pin(self);
    use_thing();
    explore_assert(prudence_epoch_repin(self));
    use_thing();
    prudence_epoch_unpin(self);
}

static void advances(void *unused)
{
    struct thing *thing = unlink_thing();

    (void)unused;
    if (prudence_epoch_try_advance(domain, NULL) && prudence_epoch_try_advance(domain, NULL))
        end_thing(thing);
}

CASE("repin", repin, 2, 3)
{
    start();
    explore_thread(moves_its_pin, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

CASE("repin-fenced", repin_fenced, 2, 3)
{
    start_fenced();
    explore_thread(moves_its_pin, NULL);
    explore_thread(frees, NULL);
    explore_thread(starts_and_drives, NULL);
}

CASE("try-advance", try_advance, 1, 3)
{
    start();
    explore_thread(moves_its_pin, NULL);
    explore_thread(advances, NULL);
    explore_thread(starts_and_drives, NULL);
}

/* ---------------------------------------------------------------------------------------- kicks */

static struct prudence_kick explored_kick;
static uint64_t *kicked_owner; /* alive while the function may be called */

static void kicks_owner(void *argument)
{
    (void)argument;
    explore_assert(*kicked_owner);
}

static void gives_and_takes_back(void *unused)
{
    struct reader_slot *slot = readers_slot_or_panic(domain);

    (void)unused;
    prudence_qsbr_online(domain);
    readers_kick_by(slot, &explored_kick);
    readers_kick_by(slot, NULL);
    explore_free(kicked_owner, sizeof *kicked_owner);
    explore_note();
    prudence_qsbr_offline(domain);
}

CASE("kick-taken-back", kick_taken_back, 3, 4)
{
    make_domain(PRUDENCE_DOMAIN_QSBR);
    kicked_owner = explore_alloc(sizeof *kicked_owner);
    *kicked_owner = 1;
    explored_kick = (struct prudence_kick){.size = sizeof explored_kick, .function = kicks_owner};
    explore_thread(gives_and_takes_back, NULL);
    explore_thread(starts_and_drives, NULL);
}

/* ------------------------------------------------------------------------------- external domains
 * The foreign scheme has one reader, whose sections are odd values of a counter. */

static uint64_t foreign_sections;

static void foreign_reads(void *unused)
{
    (void)unused;
    __atomic_fetch_add(&foreign_sections, 1, __ATOMIC_SEQ_CST);
    os_full_fence();
    use_thing();
    __atomic_fetch_add(&foreign_sections, 1, __ATOMIC_SEQ_CST);
}

static uint64_t foreign_start_poll(void *unused)
{
    (void)unused;
    os_full_fence();
    return load_acquire(&foreign_sections);
}

static bool foreign_poll_state(void *unused, uint64_t cookie)
{
    (void)unused;
    return cookie % 2 == 0 || load_acquire(&foreign_sections) != cookie;
}

static void foreign_synchronize(void *unused)
{
    uint64_t cookie = foreign_start_poll(unused);

    while (!foreign_poll_state(unused, cookie))
        os_sleep_ns(1000);
}

static void make_external(const struct prudence_domain_ops *ops)
{
    start();
    domain = prudence_domain_create_external("foreign", ops, NULL);
    explore_thread(foreign_reads, NULL);
    explore_thread(frees, NULL);
}

CASE("external-polled", external_polled, 2, 3)
{
    make_external(&(struct prudence_domain_ops){.size = sizeof(struct prudence_domain_ops),
                                                .start_poll = foreign_start_poll,
                                                .poll_state = foreign_poll_state});
    explore_thread(starts_and_drives, NULL);
}

CASE("external-synchronized", external_synchronized, 1, 2)
{
    make_external(&(struct prudence_domain_ops){.size = sizeof(struct prudence_domain_ops),
                                                .synchronize = foreign_synchronize});
    explore_thread(starts_and_drives, NULL);
}

/* Requests a second one, and never returns: the domain's thread must notice. */
static void asks_once_more(void *unused)
{
    gp_wait(domain, gp_snapshot(domain), 0);
    starts_and_drives(unused);
}

static void asked_is_over(void)
{
    explore_assert(load_relaxed(&domain->progress.completed) ==
                   load_relaxed(&domain->shared.sequence));
    explore_note();
}

CASE_THEN("external-asked", external_asked, asked_is_over, 2, 3)
{
    start();
    domain = prudence_domain_create_external(
        "foreign",
        &(struct prudence_domain_ops){.size = sizeof(struct prudence_domain_ops),
                                      .synchronize = foreign_synchronize},
        NULL);
    explore_thread(asks_once_more, NULL);
}

/* ----------------------------------------------------------------------------------------- sets */

static void frees_after_two_looks(void *unused)
{
    struct thing *thing = unlink_thing();
    gp_cookie cookie = gp_snapshot(domain);

    (void)unused;
    gp_request(domain, cookie);
    gp_drive(domain);
    gp_drive(domain);
    gp_wait(domain, cookie, 0);
    end_thing(thing);
}

static void make_set(unsigned count)
{
    struct prudence_domain *members[2];

    make_domain(PRUDENCE_DOMAIN_MEMB);
    members[0] = &prudence_default;
    members[1] = domain;
    domain = prudence_domain_create_set("set", members, count);
    explore_thread(reads, NULL);
}

CASE("set-of-one", set_of_one, 1, 3)
{
    make_set(1);
    explore_thread(frees_after_two_looks, NULL);
    explore_thread(starts_and_drives, NULL);
}

CASE("set-of-two", set_of_two, 2, 3)
{
    make_set(2);
    explore_thread(frees, NULL);
}

/* ---------------------------------------------------------------------------- visits to domains */

static void visits(void *unused)
{
    struct prudence_domain *visited;
    uint64_t after = 1; /* the default domain lives for ever */

    (void)unused;
    if (!domains_visit(&visited, 1, &after, false))
        return;
    gp_drive(visited);
    gp_domain_leave(visited);
}

static void destroys(void *unused)
{
    (void)unused;
    explore_assert(prudence_domain_destroy(domain) == 0);
    explore_note();
}

CASE("destroyed-while-visited", destroyed_while_visited, 2, 3)
{
    make_domain(PRUDENCE_DOMAIN_MEMB);
    explore_thread(visits, NULL);
    explore_thread(destroys, NULL);
}

/* ------------------------------------------------------------------------------------ callbacks */

static struct callback_queue *queue;
static struct prudence_head heads[2];
static struct thing *thing_of_callback;
static unsigned called; /* only the worker uses it */
static uint64_t called_at;

static void count_call(struct prudence_head *head)
{
    (void)head;
    called++;
    called_at = explore_clock();
}

static void end_by_callback(struct prudence_head *head)
{
    count_call(head);
    end_thing(thing_of_callback);
}

static void make_queue(void)
{
    start();
    queue = callback_queue_of(&prudence_default);
    heads[0].func = heads[1].func = count_call;
}

static void pushes(void *head)
{
    callback_push(queue, head, 0);
}

static uint64_t pushed_at;

/* Pushes while the worker's thread lingers, falls asleep, or sleeps. */
static void pushes_late(void *head)
{
    explore_late();
    pushed_at = explore_clock();
    callback_push(queue, head, 0);
}

/* Checks that both were called soon: within some naps of the worker's thread, of 20 microseconds
 * each. */
static void two_were_called_soon(void)
{
    explore_assert(called == 2);
    explore_assert(called_at - pushed_at < 1000000);
    explore_note();
}

static void two_were_called(void)
{
    explore_assert(called == 2);
    explore_note();
}

CASE_THEN("two-pushers", two_pushers, two_were_called, 2, 3)
{
    make_queue();
    explore_thread(pushes, &heads[0]);
    explore_thread(pushes, &heads[1]);
}

CASE_THEN("late-pusher", late_pusher, two_were_called_soon, 2, 3)
{
    make_queue();
    explore_thread(pushes, &heads[0]);
    explore_thread(pushes_late, &heads[1]);
}

static void unlinks_and_pushes(void *unused)
{
    (void)unused;
    thing_of_callback = unlink_thing();
    heads[0].func = end_by_callback;
    callback_push(queue, &heads[0], 0);
}

CASE("callback-frees", callback_frees, 1, 2)
{
    make_queue();
    explore_thread(reads, NULL);
    explore_thread(unlinks_and_pushes, NULL);
    explore_thread(starts_and_drives, NULL);
    callback_worker_look_at(queue); /* its thread starts before there is any work */
}

static void pushes_and_waits(void *unused)
{
    (void)unused;
    callback_push(queue, &heads[0], 0);
    callback_barrier(queue);
    explore_assert(called > 0);
    explore_note();
}

CASE("barrier", barrier, 2, 3)
{
    make_queue();
    explore_thread(pushes_and_waits, NULL);
}
