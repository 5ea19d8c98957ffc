/* SPDX-License-Identifier: MIT */
/*
 * A reader that blocks a grace period for wait_max ends the wait of a throttled caller, because the
 * reader may want that caller's lock. A reader that only waits for a CPU does not; the system, and
 * here the test, shows which threads do.
 */
#include "os/posix/posix.h"

#include "slab/reclaim/limit.h"
#include "slab/reclaim/throttle.h"
#include "slab/reclaim/wait.h"
#include "support/gp_reader.h"
#include "support/gp_reader_told.h"
#include "support/slab_test.h"

#define COUNT   1024 /* objects of 4 KiB that fill latent_limit */
#define MORE    256  /* more objects than CPUs have reserved ahead */
#define LOOKS   5
#define STEP_NS 10000000

static void *objects[COUNT + MORE];
static struct prudence_cache *cache;
static struct held_reader reader;

static bool is_leaving; /* a reader will leave, and has not yet */

/* A reader that leaves has ended before the caller goes on, whatever CPUs its thread gets. */
static bool tell(int thread, bool *wants_cpu, uint64_t *had)
{
    bool known;

    assert_int_equal(thread, reader.tid);
    known = told_fares(thread, wants_cpu, had);
    while (load_relaxed(&looks) >= LOOKS && load_acquire(&is_leaving))
        pause_ms(1);
    return known;
}

static uint64_t expiries(void)
{
    return load_relaxed(&wait_counts.expiries);
}

/* Fills the limit with objects that the reader may see. */
static void fill(void)
{
    looks = 0;
    reader = (struct held_reader){.domain = NULL};
    cache = fixed_cache(4096, 0, NULL);
    allocate_all(cache, objects, COUNT + MORE);
    held_reader_start(&reader);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    defer_all(cache, objects, COUNT);
    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
}

static void defer_more(void)
{
    defer_all(cache, objects + COUNT, MORE);
}

static void empty(void)
{
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    destroy_empty(cache);
}

static bool is_deferred;

static void *leave_after_looks(void *unused)
{
    while (load_relaxed(&looks) < LOOKS && !load_acquire(&is_deferred))
        pause_ms(1);
    held_reader_end(&reader);
    store_release(&is_leaving, false);
    return unused;
}

static pthread_t start_leaver(void)
{
    pthread_t leaver;

    is_deferred = false;
    is_leaving = true;
    assert_int_equal(pthread_create(&leaver, NULL, leave_after_looks, NULL), 0);
    return leaver;
}

static void join_leaver(pthread_t leaver)
{
    store_release(&is_deferred, true);
    pthread_join(leaver, NULL);
}

TEST(one_that_has_none_is_waited_for)
{
    uint64_t before = expiries();
    pthread_t leaver;

    say(true, true, 0);
    fill();
    leaver = start_leaver();
    defer_more();
    join_leaver(leaver);
    assert_true(looks >= LOOKS);
    assert_int_equal(expiries(), before);
    empty();
}

static void expires_while_it_stays(unsigned looks_least, unsigned looks_most)
{
    uint64_t before = expiries();

    fill();
    defer_more();
    assert_int_equal(expiries(), before + 1);
    assert_in_range(looks, looks_least, looks_most);
    held_reader_end(&reader);
    empty();
}

TEST(one_that_has_one_is_not)
{
    say(true, true, STEP_NS);
    expires_while_it_stays(3, 3);
}

TEST(one_that_is_blocked_is_not)
{
    say(true, false, 0);
    expires_while_it_stays(1, 1);
}

TEST(one_that_nobody_knows_of_is_not)
{
    say(false, true, 0);
    expires_while_it_stays(1, 1);
}

/* A reader that never gets a CPU is still not waited for without end. */
TEST(none_is_waited_for_for_ever)
{
    say(true, true, 0);
    expires_while_it_stays(LOOKS, 1000);
}

/* An allocation also waits for such a reader, when too much is latent for the cache to grow. */
TEST(an_allocation_waits_too)
{
    uint64_t before = expiries();
    pthread_t leaver;
    gp_cookie cookie;

    say(true, true, 0);
    fill();
    leaver = start_leaver();
    assert_true(throttle_until_safe(cache, &cookie));
    join_leaver(leaver);
    assert_int_equal(expiries(), before);
    free_all(cache, objects + COUNT, MORE);
    empty();
}

/*
 * When other threads take the freed room each time, no reader is to blame, although one is inside
 * in the end. A deferral then gives up for itself alone, and the next one waits again.
 */
#define WAIT_MAX_MS 20

static void *enter_later(void *waits_before)
{
    while (load_relaxed(&wait_counts.waits) == *(uint64_t *)waits_before)
        pause_ms(1);
    pause_ms(10 * WAIT_MAX_MS); /* half the time after which the deferral gives up */
    held_reader_start(&reader);
    return NULL;
}

static uint64_t waits_of_two_deferrals(void)
{
    uint64_t before = load_relaxed(&wait_counts.waits);
    pthread_t enters;

    reader = (struct held_reader){.domain = NULL};
    assert_int_equal(pthread_create(&enters, NULL, enter_later, &before), 0);
    defer_all(cache, objects, 1);
    pthread_join(enters, NULL);
    defer_all(cache, objects + 1, 1);
    held_reader_end(&reader);
    return load_relaxed(&wait_counts.waits) - before;
}

TEST(none_is_blamed_for_what_others_were_faster_at)
{
    unsigned attempts = 0;
    size_t taken = 0;

    say(true, true, 0);
    cache = fixed_cache(4096, 0, NULL);
    assert_int_equal(prudence_option_set("latent_limit", "4M"), 0);
    while (limit_reserve(os_cpu_current(), 4096)) /* other threads have all the room */
        taken += 4096;
    do { /* repeat if a busy machine delayed the deferral for the rest of its time */
        assert_true(attempts++ < 10);
        allocate_all(cache, objects, 2);
    } while (waits_of_two_deferrals() < 2);
    limit_release(os_cpu_current(), taken);
    empty();
}

TEST(the_system_tells)
{
    uint64_t had, later;
    bool wants_cpu;
    struct held_reader blocked = {.domain = NULL};

    posix_cpu_injected = NULL;
    held_reader_start(&blocked);
    do /* on the way into the semaphore at first */
        assert_true(os_thread_wants_cpu(blocked.tid, &wants_cpu, &had));
    while (wants_cpu);
    held_reader_end(&blocked);
    assert_true(os_thread_wants_cpu(gettid(), &wants_cpu, &had));
    assert_true(wants_cpu);
    do
        assert_true(os_thread_wants_cpu(gettid(), &wants_cpu, &later));
    while (later < had + STEP_NS);
    assert_false(os_thread_wants_cpu(0x3fffffff, &wants_cpu, &had));
}

static int start(void **state)
{
    posix_cpu_injected = tell;
    return prudence_option_set("wait_max", "20ms");
}

SUITE_BETWEEN(start, NULL, pin_thread())
