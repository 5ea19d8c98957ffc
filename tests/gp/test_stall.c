/* SPDX-License-Identifier: MIT */
/* A reader that stays too long is named once: thread, id, duration. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/domain.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"

static void *named_reader(void *argument)
{
    pthread_setname_np(pthread_self(), "slow-reader");
    return held_reader_run(argument);
}

static void poll_for_ms(prudence_gp_t cookie, unsigned milliseconds)
{
    unsigned long long end = now_ns() + milliseconds * 1000000ull;

    while (now_ns() < end) {
        prudence_gp_poll_state(cookie);
        pause_ms(1);
    }
}

/* One section is polled at for `stays` ms; prints the reader's id. */
static void stay(unsigned stays)
{
    struct held_reader reader = {.domain = NULL};

    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    pthread_create(&reader.thread, NULL, named_reader, &reader);
    sem_wait(&reader.inside);
    printf("tid is %d;\n", (int)reader.tid);
    poll_for_ms(prudence_gp_start_poll(), stays);
    held_reader_end(&reader);
    prudence_synchronize();
}

static int stall(void *argument)
{
    struct prudence_stats stats;

    prudence_option_set("stall_timeout", argument);
    stay(250);
    stay(1);
    fflush(stdout);
    prudence_stats(&stats);
    return (int)stats.stalls;
}

static void a_stall_is_reported_once_by_name_id_and_duration(void **state)
{
    struct child_result result;
    const char *told;
    char tid[32];
    int id = 0;

    (void)state;
    child_run(stall, "100ms", &result);
    assert_true(child_exited_with(&result, 1));
    assert_int_equal(child_count(&result, "stall:"), 1);
    assert_true(child_said(&result, "'slow-reader'"));
    assert_true(child_said(&result, "'default'"));
    assert_int_equal(sscanf(strstr(result.output, "tid is"), "tid is %d", &id), 1);
    snprintf(tid, sizeof tid, "(tid %d)", id);
    assert_true(child_said(&result, tid));
    told = strstr(result.output, "ending for ");
    assert_non_null(told);
    assert_in_range(atoi(told + strlen("ending for ")), 100, 240);
}

static int stall_twice(void *unused)
{
    (void)unused;
    prudence_option_set("stall_timeout", "20ms");
    stay(60);
    stay(60);
    return 0;
}

static void another_section_is_reported_anew(void **state)
{
    struct child_result result;

    (void)state;
    child_run(stall_twice, NULL, &result);
    assert_int_equal(child_count(&result, "stall:"), 2);
}

static void no_stall_is_reported_when_the_option_says_never(void **state)
{
    struct child_result result;

    (void)state;
    child_run(stall, "0", &result);
    assert_true(child_exited_with(&result, 0));
    assert_false(child_said(&result, "stall:"));
}

/* Another driver noted the reader after this one looked at the clock. */
static int note_from_the_future(void *unused)
{
    struct reader_slot *slot;
    uint64_t word;

    (void)unused;
    prudence_read_lock();
    slot = readers_slot_if_any(&prudence_default);
    word = slot->reader.word;
    slot->stall_word = word & ~PRUDENCE_NESTING_MASK;
    slot->stall_since = os_clock_ns() + 1000000000;
    stall_note(&prudence_default, slot, word);
    return (int)prudence_default.stalls;
}

static void clocks_read_in_another_order_are_no_stall(void **state)
{
    struct child_result result;

    (void)state;
    child_run(note_from_the_future, NULL, &result);
    assert_true(child_exited_with(&result, 0));
    assert_false(child_said(&result, "stall:"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stall_is_reported_once_by_name_id_and_duration),
        cmocka_unit_test(another_section_is_reported_anew),
        cmocka_unit_test(no_stall_is_reported_when_the_option_says_never),
        cmocka_unit_test(clocks_read_in_another_order_are_no_stall),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
