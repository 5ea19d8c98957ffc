/* SPDX-License-Identifier: MIT */
/*
 * A reader that stays too long is reported once: thread, id, duration.
 *
 * ctest: alone (measures how long a reader stays)
 */
#define _GNU_SOURCE

#include <pthread.h>

#include <prudence/hazard.h>
#include <prudence/prudence.h>
#include <prudence/stats.h>

#include "gp/user/domain.h"
#include "gp/user/readers.h"
#include "gp/user/slots.h"
#include "gp/user/stall.h"
#include "support/gp_child.h"
#include "support/gp_reader.h"
#include "support/suite.h"

static void *named_reader(void *argument)
{
    pthread_setname_np(pthread_self(), "slow-reader");
    return held_reader_run(argument);
}

#define LONG_NS UINT64_C(1500000000000)

static struct reader_slot *slot_of_thread(int thread)
{
    struct reader_chunk *chunk;
    struct reader_slot *slot;

    for_each_slot(chunk, slot, &prudence_default) if (slot->thread == thread) return slot;
    abort();
}

/* Reads one section, repeatedly if `for_long`, as if it had been blocking for long; prints
 * the reader's id. Does not wait for the clock, but moves the recorded start of the stay back. */
static void stay(bool for_long)
{
    struct held_reader reader = {.domain = NULL};
    prudence_gp_t cookie;

    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    pthread_create(&reader.thread, NULL, named_reader, &reader);
    sem_wait(&reader.inside);
    printf("tid is %d;\n", (int)reader.tid);
    cookie = prudence_gp_start_poll();
    prudence_gp_poll_state(cookie);
    if (for_long) {
        slot_of_thread(reader.tid)->stall_since -= LONG_NS;
        for (unsigned i = 0; i < 10; i++)
            prudence_gp_poll_state(cookie);
    }
    held_reader_end(&reader);
    prudence_synchronize();
}

static int stall(void *argument)
{
    struct prudence_stats stats;

    prudence_option_set("stall_timeout", argument);
    stay(true);
    stay(false);
    fflush(stdout);
    prudence_stats(&stats);
    return (int)stats.stalls;
}

TEST(a_stall_is_reported_once_by_name_id_and_duration)
{
    const char *told;
    char tid[32];
    int id = 0;

    expect_exit(1, stall("1000s"), "");
    assert_int_equal(said("stall:"), 1);
    assert_true(said("'slow-reader'"));
    assert_true(said("'default'"));
    assert_int_equal(sscanf(strstr(last_child.output, "tid is"), "tid is %d", &id), 1);
    snprintf(tid, sizeof tid, "(tid %d)", id);
    assert_true(said(tid));
    told = strstr(last_child.output, "ending for ");
    assert_non_null(told);
    assert_in_range(atoi(told + strlen("ending for ")), LONG_NS / 1000000,
                    LONG_NS / 1000000 + 100000);
}

static int stall_twice(void *unused)
{
    prudence_option_set("stall_timeout", "1000s");
    stay(true);
    stay(true);
    return 0;
}

TEST(another_section_is_reported_anew)
{
    struct child_result result;

    child_run(stall_twice, NULL, &result);
    assert_int_equal(child_count(&result, "stall:"), 2);
}

TEST(no_stall_is_reported_when_the_option_says_never)
{
    expect_exit(0, stall("0"), "");
    assert_false(said("stall:"));
}

/* Another driver noted the reader after this one had read the clock. */
static int note_from_the_future(void)
{
    struct reader_slot *slot;
    uint64_t word;

    prudence_read_lock();
    slot = readers_slot_if_any(&prudence_default);
    word = slot->reader.word;
    slot->stall_word = word & ~PRUDENCE_NESTING_MASK;
    slot->stall_since = os_clock_ns() + 1000000000;
    stall_note(&prudence_default, slot, word);
    return (int)prudence_default.stalls;
}

TEST(clocks_read_in_another_order_are_no_stall)
{
    expect_exit(0, note_from_the_future(), "");
    assert_false(said("stall:"));
}

/* ------------------------------------------------------------------------- hook and trace */

static struct prudence_stall told;
static char told_domain[32], told_name[32];
static unsigned told_times;

static void note_stall(const struct prudence_stall *stall, void *argument)
{
    told = *stall;
    snprintf(told_domain, sizeof told_domain, "%s", stall->domain);
    snprintf(told_name, sizeof told_name, "%s", stall->thread_name);
    told_times += argument == &told;
    prudence_free(prudence_malloc(100)); /* allowed */
}

/* Polls until `stalls` stalls were reported; a busy machine may take long. */
static void poll_until_told(struct prudence_domain *domain, uint64_t stalls)
{
    prudence_gp_t cookie = prudence_domain_start_poll(domain);
    unsigned long long end = now_ns() + 20000000000ull;

    while (load_relaxed(&domain->stalls) < stalls && now_ns() < end) {
        prudence_domain_poll_state(domain, cookie);
        pause_ms(1);
    }
}

/* Runs one reader, by this function, until `stalls` stalls were reported. */
static void stay_until_told(void *(*run)(void *), uint64_t stalls)
{
    struct held_reader reader = {.domain = NULL};

    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    pthread_create(&reader.thread, NULL, run, &reader);
    sem_wait(&reader.inside);
    poll_until_told(&prudence_default, stalls);
    held_reader_end(&reader);
    prudence_synchronize();
}

static int stall_with_hook(void)
{
    prudence_option_set("stall_timeout", "20ms");
    prudence_stall_hook_set(note_stall, &told);
    stay_until_told(named_reader, 1);
    if (told_times != 1 || told.size != sizeof told || told.thread <= 0 || told.frame_count ||
        told.nanoseconds < 20000000 || strcmp(told_domain, "default") != 0 ||
        strcmp(told_name, "slow-reader") != 0)
        return 1;
    prudence_stall_hook_set(NULL, NULL);
    stay_until_told(named_reader, 2);
    return told_times == 1 ? 42 : 2;
}

/* Moves the start of the stay, and the last check, back in time, as if the process had been stopped
 * since. */
static int stop_between_looks(void *last_look_too)
{
    struct held_reader reader = {.domain = NULL};
    struct reader_slot *slot;
    struct prudence_stats stats;
    prudence_gp_t cookie;

    prudence_option_set("stall_timeout", "1000s");
    held_reader_start(&reader);
    cookie = prudence_gp_start_poll();
    prudence_gp_poll_state(cookie);
    slot = slot_of_thread(reader.tid);
    for (unsigned stop = 0; stop < 3; stop++) {
        slot->stall_since -= LONG_NS;
        if (last_look_too)
            slot->stall_looked -= LONG_NS;
        prudence_gp_poll_state(cookie);
    }
    prudence_stats(&stats);
    held_reader_end(&reader);
    return (int)stats.stalls;
}

TEST(time_in_which_the_process_was_stopped_is_no_stall)
{
    int yes;

    expect_exit(0, stop_between_looks(&yes), "");
    expect_exit(1, stop_between_looks(NULL), "");
}

TEST(the_hook_is_told_what_the_report_says)
{
    expect_exit(42, stall_with_hook(), "");
    assert_int_equal(said("stall:"), 2);
}

static struct prudence_hazard *hazard;
static int named_object[2];

static void *names_an_object(void *reader)
{
    hazard = prudence_hazard_acquire();
    prudence_hazard_set(hazard, &named_object[0]);
    named_reader(reader);
    prudence_hazard_release(hazard);
    return NULL;
}

static bool was_told_of(const void *object, int thread)
{
    return told.object == object && told.thread == thread && !strcmp(told_domain, "hazards") &&
           !strcmp(told_name, thread ? "slow-reader" : "");
}

/* A thread keeps one name, then another; a slot of no thread keeps one as well. */
static int hazards_that_stay(void)
{
    struct prudence_domain *domain =
        prudence_domain_create("hazards", PRUDENCE_DOMAIN_HAZARD, NULL);
    struct prudence_hazard *movable = prudence_hazard_acquire_movable();
    struct held_reader reader = {.domain = NULL};
    bool told_of_thread, told_of_movable;

    gp_stall_timeout = 1;
    prudence_stall_hook_set(note_stall, &told);
    sem_init(&reader.inside, 0, 0);
    sem_init(&reader.leave, 0, 0);
    pthread_create(&reader.thread, NULL, names_an_object, &reader);
    sem_wait(&reader.inside);
    poll_until_told(domain, 1);
    for (int i = 0; i < 10; i++)
        prudence_domain_poll_state(domain, prudence_domain_start_poll(domain));
    told_of_thread = told_times == 1 && was_told_of(&named_object[0], reader.tid);
    held_reader_end(&reader);
    prudence_hazard_set(movable, &named_object[1]);
    poll_until_told(domain, 2);
    told_of_movable = told_times == 2 && was_told_of(&named_object[1], 0);
    prudence_hazard_release(movable);
    return told_of_thread && told_of_movable && !prudence_domain_destroy(domain) ? 42 : 1;
}

TEST(hazard_pointers_that_stay_are_reported)
{
    char text[100];

    expect_exit(42, hazards_that_stay(), "");
    assert_int_equal(said("stall:"), 2);
    assert_true(said("stall: a hazard pointer of thread 'slow-reader' (tid "));
    snprintf(text, sizeof text, "a movable hazard pointer has named %p", (void *)&named_object[1]);
    assert_true(said(text));
}

/* Not static, so that the trace can find the name. */
void *reader_to_be_found(void *argument);
__attribute__((noinline)) void *reader_to_be_found(void *argument)
{
    void *result = named_reader(argument);

    __asm__ __volatile__("" ::: "memory"); /* no tail call */
    return result;
}

static bool is_in(const void *frame, uintptr_t function)
{
    return (uintptr_t)frame - function < 512;
}

static bool found;

static void look_for_frame(const struct prudence_stall *stall, void *unused)
{
    for (unsigned i = 0; i < stall->frame_count; i++)
        found |= is_in(stall->frames[i], (uintptr_t)reader_to_be_found);
}

static int stall_with_trace(void)
{
    prudence_option_set("stall_timeout", "20ms");
    prudence_option_set("stall_trace", "1");
    prudence_stall_hook_set(look_for_frame, NULL);
    for (unsigned i = 0; i < 20 && !found; i++) /* on a busy machine the answer may come too late */
        stay_until_told(reader_to_be_found, i + 1);
    return found ? 42 : 1;
}

TEST(the_reader_is_found_where_it_is)
{
    expect_exit(42, stall_with_trace(), "that thread is now at:", "#0 0x");
}

static void *deaf_reader(void *argument)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return named_reader(argument);
}

static int stall_deaf(void)
{
    prudence_option_set("stall_timeout", "20ms");
    prudence_option_set("stall_trace", "1");
    stay_until_told(deaf_reader, 1);
    return 42;
}

TEST(a_reader_that_blocks_signals_is_reported_without_a_trace)
{
    expect_exit(42, stall_deaf(), "");
    assert_int_equal(said("stall:"), 1);
    assert_true(said("(unknown: the thread has not answered SIGURG"));
}

static unsigned urgent;

static void on_urgent(int number)
{
    urgent++;
}

/* The program's earlier handler still gets its own signals; one installed later is not
 * disturbed. */
static int handlers_of_the_program(void)
{
    signal(SIGURG, on_urgent);
    prudence_option_set("stall_timeout", "20ms");
    prudence_option_set("stall_trace", "1");
    raise(SIGURG);
    if (urgent != 1)
        return 1;
    signal(SIGURG, on_urgent);
    stay_until_told(named_reader, 1);
    return urgent == 1 ? 42 : 2;
}

TEST(handlers_of_the_program_are_respected)
{
    expect_exit(42, handlers_of_the_program(), "");
    assert_int_equal(said("stall:"), 1);
    assert_true(said("(unknown: the program has replaced the library's handler"));
}

static int stall_in_srcu(void)
{
    struct prudence_domain *domain = prudence_domain_create("slow", PRUDENCE_DOMAIN_SRCU, NULL);
    struct held_reader reader = {.domain = domain};
    int index;

    prudence_option_set("stall_timeout", "20ms");
    prudence_stall_hook_set(note_stall, &told);
    held_reader_start(&reader);
    poll_until_told(domain, 1);
    held_reader_end(&reader);
    if (told_times != 1 || told.thread != reader.tid || strcmp(told_domain, "slow") != 0)
        return 1;
    index = prudence_srcu_down_read(domain);
    poll_until_told(domain, 2);
    prudence_srcu_up_read(domain, index);
    return told_times == 2 && told.thread == 0 ? 42 : 2;
}

TEST(srcu_names_threads_but_not_those_that_handed_over)
{
    expect_exit(42, stall_in_srcu(), "of domain 'slow'", "prudence_srcu_down_read");
}

SUITE()
