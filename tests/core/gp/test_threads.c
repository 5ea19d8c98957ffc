/* SPDX-License-Identifier: MIT */
/*
 * Threads as readers: slots that are freed and used again, a thousand threads.
 *
 * ctest: not-with thread (ThreadSanitizer forgets a thread before its last destructors, handlers)
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include "support/suite.h"

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/threads.h"
#include "support/stats.h"

static uint64_t readers_now(void)
{
    return stats_now().readers;
}

static void *exit_inside(void *unused)
{
    prudence_read_lock();
    return unused;
}

static void *read_after(void *held)
{
    prudence_read_lock();
    prudence_read_unlock();
    *(bool *)held = prudence_read_lock_held();
    return NULL;
}

static int read_with_the_slot_of_one_that_exited_inside(void *unused)
{
    bool held = true;

    in_thread(exit_inside, NULL);
    in_thread(read_after, &held);
    return held ? 1 : 42;
}

TEST(the_next_owner_of_the_slot_starts_outside)
{
    assert_child(read_with_the_slot_of_one_that_exited_inside, NULL);
}

static void *read_once(void *unused)
{
    prudence_read_lock();
    prudence_read_unlock();
    return unused;
}

static unsigned chunks_now(void)
{
    struct reader_chunk *chunk;
    unsigned chunks = 0;

    for (chunk = prudence_default.chunks; chunk; chunk = chunk->next)
        chunks++;
    return chunks;
}

TEST(slots_are_used_again)
{
    uint64_t before = readers_now();
    unsigned chunks;

    read_once(NULL);
    chunks = chunks_now();
    for (unsigned i = 0; i < 2000; i++) {
        in_thread(read_once, NULL);
    }
    assert_in_range(readers_now(), before, before + 1);
    assert_int_equal(chunks_now(), chunks);
}

#define MANY 1000

/* A scan costs as much as its slots; a bound far above the usual 2 to 10 us catches a lock, a
 * system call or a quadratic walk. */
TEST(a_thousand_readers_are_scanned_fast)
{
    static struct held_reader readers[MANY];
    unsigned long long began, spent, best = ~0ull;
    uint64_t before;

    while ((before = readers_now()) > 1) /* a thread ends a little after the join */
        pause_ms(1);
    for (unsigned i = 0; i < MANY; i++)
        held_reader_start(&readers[i]);
    assert_int_equal(readers_now(), before + MANY);
    for (unsigned i = 0; i < 100; i++) {
        prudence_gp_t cookie = prudence_gp_start_poll();

        began = now_ns();
        assert_false(prudence_gp_poll_state(cookie)); /* one scan, with all of them inside */
        spent = now_ns() - began;
        best = spent < best ? spent : best;
    }
    print_message("scan of %u registered readers, all inside: %.1f us\n", MANY,
                  (double)best / 1000);
    for (unsigned i = 0; i < MANY; i++)
        sem_post(&readers[i].leave);
    for (unsigned i = 0; i < MANY; i++)
        pthread_join(readers[i].thread, NULL);
    assert_int_equal(readers_now(), before);
    assert_true(best < 2000000);
    best = ~0ull;
    for (unsigned i = 0; i < 100; i++) {
        began = now_ns();
        prudence_synchronize();
        spent = now_ns() - began;
        best = spent < best ? spent : best;
    }
    print_message("synchronize after they ended: %.1f us\n", (double)best / 1000);
}

SUITE()
