/* SPDX-License-Identifier: MIT */
/*
 * Under a storm of signals, an interrupted section gives up without any effect, and other sections
 * never do. So no more operations take the slow path than there are interruptions.
 *
 * ctest: not-with thread (ThreadSanitizer's build has no sequences)
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <sys/resource.h>
#include <sys/time.h>

#include <prudence/counter.h>

#include "support/slab_test.h"

#define SIGNALS 3000
#define GIVE_UP 20 /* sections at least */

static volatile sig_atomic_t handled;

static void handle(int number)
{
    handled = handled + 1;
}

/* Requests the next signal, soon, but never so often that no progress is made. */
static void call_for_a_signal(unsigned long microseconds)
{
    struct itimerval soon = {{0, 0}, {0, (suseconds_t)microseconds}};

    assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

static long switches(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw + usage.ru_minflt + usage.ru_majflt;
}

TEST(no_more_give_up)
{
    struct prudence_counter *counter = prudence_counter_create();
    struct prudence_cache *cache = fixed_cache(64, 64, NULL);
    unsigned long rounds = 0, sections = 0, gave_up = 0;
    struct cpu_cache *cpu;
    void *objects[32];
    long before, interruptions, called = 0;
    uint64_t held;

    if (!os_percpu_rseq)
        skip();
    allocate_all(cache, objects, 32);
    free_all(cache, objects, 32);
    cpu = cpu_here(cache);
    held = stack_count(&cpu->line);
    assert_true(held > 0);
    signal(SIGALRM, handle);
    before = switches();
    for (; handled < SIGNALS || gave_up < GIVE_UP; rounds++) {
        void *object;

        if (handled == called) {
            called++;
            call_for_a_signal(5 + rounds % 50);
        }
        object = os_percpu_pop(&cache->percpu);
        sections++;
        gave_up += !object;
        while (object && !os_percpu_push(&cache->percpu, object))
            sections++, gave_up++;
        sections += object != NULL;
        prudence_counter_add(counter, 1);
    }
    interruptions = handled + switches() - before;
    print_message("%ld interruptions, %lu of %lu sections gave up\n", interruptions, gave_up,
                  sections);
    assert_true((long)gave_up <= interruptions);
    assert_int_equal(stack_count(&cpu->line), held);
    assert_int_equal(prudence_counter_sum(counter), rounds);
    prudence_counter_destroy(counter);
    destroy_empty(cache);
}

SUITE(pin_thread())
