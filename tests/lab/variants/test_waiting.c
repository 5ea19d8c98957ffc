/* SPDX-License-Identifier: MIT */
/*
 * Each RCU variant waits for readers. Deterministic cases have a reader that stays, one that a
 * handler of the same place interrupts, and one that is preempted and goes on elsewhere. Then many
 * readers note the ages of the objects that they see. The age of an object is 0 while readers can
 * find the object, 1 after the removal, and one more for each grace period since. If a reader sees
 * age 2, the variant did not wait for the reader. The variant that waits for no reader must be
 * caught.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "support/suite.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "variant.h"
#include "support/torture_seconds.h"

/* Runs `body` in a child, because a variant has static state, and liburcu has threads. */
static int in_child(int (*body)(const struct variant *variant), const struct variant *variant)
{
    int status;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body(variant));
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status))
        fail_msg("%s: ended by signal %d", variant->name, WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Returns true if the variant supports this number of places. */
static bool has_room_for(const struct variant *variant, unsigned places)
{
    return !variant->places_max || places <= variant->places_max;
}

/* ------------------------------------------------------------------------------- one that stays */

static int step; /* atomic. 1: the reader is inside, 2: may leave, 3: the callback has run */

static void set_step(int value)
{
    __atomic_store_n(&step, value, __ATOMIC_SEQ_CST);
}

static void wait_for_step(int value)
{
    while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < value)
        variant_sleep_ns(100000);
}

static void *stay(void *unused)
{
    variant_busy(1);
    variant_read_lock(1);
    set_step(1);
    wait_for_step(2);
    variant_read_unlock(1);
    variant_switch(1);
    while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < 3) {
        variant_switch(1);
        variant_sleep_ns(100000);
    }
    variant_leave(1);
    return unused;
}

static int early;

static void note_callback(struct variant_head *head)
{
    (void)head;
    if (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < 2)
        early = 1;
    set_step(3);
}

static void *let_go(void *unused)
{
    variant_sleep_ns(30000000);
    if (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < 2)
        set_step(2);
    return unused;
}

static int callback_waits(const struct variant *variant)
{
    pthread_t reader, timer;
    struct variant_head head;

    variant_start(variant, 2);
    pthread_create(&reader, NULL, stay, NULL);
    wait_for_step(1);
    variant_busy(0);
    pthread_create(&timer, NULL, let_go, NULL);
    variant_call(0, &head, note_callback);
    while (__atomic_load_n(&step, __ATOMIC_SEQ_CST) < 3) {
        variant_switch(0);
        variant_pause();
    }
    pthread_join(timer, NULL);
    pthread_join(reader, NULL);
    variant_leave(0);
    variant_stop();
    return early;
}

static int synchronize_waits(const struct variant *variant)
{
    pthread_t reader, timer;
    int too_early;

    variant_start(variant, 2);
    pthread_create(&reader, NULL, stay, NULL);
    wait_for_step(1);
    variant_busy(0);
    pthread_create(&timer, NULL, let_go, NULL);
    variant_synchronize(0);
    too_early = __atomic_load_n(&step, __ATOMIC_SEQ_CST) < 2;
    set_step(3);
    pthread_join(timer, NULL);
    pthread_join(reader, NULL);
    variant_leave(0);
    variant_stop();
    return too_early;
}

TEST(a_reader_that_stays_is_waited_for)
{
    (void)state;
    for (unsigned i = 0; variants[i]; i++) {
        bool waits = variants[i] != &variant_none;

        if (!has_room_for(variants[i], 2))
            continue;
        if ((in_child(callback_waits, variants[i]) == 0) != waits)
            fail_msg("%s: callback", variants[i]->name);
        if (waits && in_child(synchronize_waits, variants[i]))
            fail_msg("%s: synchronize", variants[i]->name);
    }
}

static int idle_places_are_passed(const struct variant *variant)
{
    variant_start(variant,
                  has_room_for(variant, 8) ? 8 : variant->places_max); /* one place is busy */
    variant_busy(0);
    for (unsigned i = 0; i < 10; i++)
        variant_synchronize(0);
    variant_leave(0);
    variant_stop();
    return 0;
}

TEST(idle_places_hold_up_nobody)
{
    (void)state;
    for (unsigned i = 0; variants[i]; i++)
        assert_int_equal(in_child(idle_places_are_passed, variants[i]), 0);
}

/* ------------------------------------------------------------------- one that is interrupted */

static int called; /* atomic */

static void note_call(struct variant_head *head)
{
    (void)head;
    __atomic_store_n(&called, 1, __ATOMIC_SEQ_CST);
}

static bool was_called(void)
{
    return __atomic_load_n(&called, __ATOMIC_SEQ_CST);
}

/* A callback queued at a place, as by a handler that interrupts a section there, waits for the
 * section. */
static int call_inside_waits(const struct variant *variant)
{
    struct variant_head head;

    variant_start(variant, 1);
    variant_busy(0);
    variant_read_lock(0);
    variant_call(0, &head, note_call);
    variant_sleep_ns(30000000);
    if (was_called())
        return 1;
    variant_read_unlock(0);
    while (!was_called()) {
        variant_switch(0);
        variant_pause();
    }
    variant_leave(0);
    variant_stop();
    return 0;
}

TEST(a_call_inside_a_section_waits_for_its_end)
{
    (void)state;
    for (unsigned i = 0; variants[i]; i++)
        if ((in_child(call_inside_waits, variants[i]) == 0) == variants[i]->called_at_once)
            fail_msg("%s", variants[i]->name);
}

/* -------------------------------------------------------------------- one that is preempted */

/* One thread has places 0 to 2. The places in the mask read and switch long enough for some grace
 * periods. */
static void go_on(unsigned places)
{
    for (unsigned turn = 0; turn < 60; turn++) {
        for (unsigned place = 0; place < 3; place++) {
            if (!(places >> place & 1))
                continue;
            variant_read_lock(place);
            variant_read_unlock(place);
            variant_switch(place);
        }
        variant_sleep_ns(1000000);
    }
}

/* The reader of place 1 is preempted before or after the call, and goes on at place 2. */
static int preempted_is_waited_for(const struct variant *variant, bool runs_first)
{
    struct variant_head head;
    struct variant_task task;

    variant_start(variant, 3);
    for (unsigned place = 0; place < 3; place++)
        variant_busy(place);
    variant_read_lock(1);
    if (runs_first) {
        variant_call(0, &head, note_call);
        go_on(5);
    }
    variant->preempt(1, &task);
    if (!runs_first)
        variant_call(0, &head, note_call);
    go_on(7);
    variant_idle(1);
    go_on(5);
    variant->resume(2, &task);
    go_on(1);
    if (was_called())
        return 1;
    variant_read_unlock(2);
    while (!was_called())
        go_on(5);
    variant_leave(0);
    variant_leave(2);
    variant_stop();
    return 0;
}

static int preempted_before_is_waited_for(const struct variant *variant)
{
    return preempted_is_waited_for(variant, false);
}

static int preempted_after_is_waited_for(const struct variant *variant)
{
    return preempted_is_waited_for(variant, true);
}

TEST(a_preempted_reader_is_waited_for)
{
    (void)state;
    for (unsigned i = 0; variants[i]; i++) {
        if (!variants[i]->preempt)
            continue;
        if (in_child(preempted_before_is_waited_for, variants[i]))
            fail_msg("%s: preempted before the call", variants[i]->name);
        if (in_child(preempted_after_is_waited_for, variants[i]))
            fail_msg("%s: preempted after the call", variants[i]->name);
    }
}

/* ---------------------------------------------------------------------------------------- many */

#define READERS 3
#define WRITERS 2
#define OBJECTS 512
#define AGE_MAX 6 /* an object of this age is used again */

struct object {
    struct variant_head head; /* first */
    unsigned age;             /* atomic */
    int used;                 /* atomic */
};

static struct object objects[OBJECTS];
static struct object *shared;
static uint64_t ages[AGE_MAX + 2];
static int over;

static struct object *object_take(void)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        int unused = 0;

        if (__atomic_compare_exchange_n(&objects[i].used, &unused, 1, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
            __atomic_store_n(&objects[i].age, 0, __ATOMIC_RELEASE);
            return &objects[i];
        }
    }
    return NULL;
}

/* Adds a grace period to the age. Returns false if the object is now old enough to be used
 * again. */
static bool object_ages(struct object *object)
{
    if (__atomic_add_fetch(&object->age, 1, __ATOMIC_SEQ_CST) < AGE_MAX)
        return true;
    __atomic_store_n(&object->used, 0, __ATOMIC_RELEASE);
    return false;
}

/* Objects that the next writer queues again, because callbacks may run on a thread without a
 * place. */
static struct variant_head *again;

static void object_aged(struct variant_head *head)
{
    struct object *object = (void *)head;

    if (!object_ages(object))
        return;
    head->next = __atomic_load_n(&again, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&again, &head->next, head, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
        ;
}

static void call_again(unsigned place)
{
    struct variant_head *head = __atomic_exchange_n(&again, NULL, __ATOMIC_SEQ_CST);

    while (head) {
        struct variant_head *next = head->next;

        variant_call(place, head, object_aged);
        head = next;
    }
}

static void age_by_waiting(unsigned place, struct object *object)
{
    do
        variant_synchronize(place);
    while (object_ages(object));
}

static void *write_often(void *argument)
{
    unsigned place = (unsigned)(uintptr_t)argument;
    bool synchronous = place % 2;

    variant_busy(place);
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        struct object *fresh = object_take(), *old;

        call_again(place);
        variant_switch(place);
        if (!fresh) {
            variant_pause();
            continue;
        }
        old = __atomic_exchange_n(&shared, fresh, __ATOMIC_ACQ_REL);
        __atomic_store_n(&old->age, 1, __ATOMIC_SEQ_CST);
        if (synchronous)
            age_by_waiting(place, old);
        else
            variant_call(place, &old->head, object_aged);
    }
    variant_leave(place);
    return NULL;
}

static void note_age(const struct object *object)
{
    unsigned age = __atomic_load_n(&object->age, __ATOMIC_ACQUIRE);

    __atomic_fetch_add(&ages[age < AGE_MAX ? age : AGE_MAX], 1, __ATOMIC_RELAXED);
}

/* Lets another task have the place for a while, sometimes long enough for some grace periods of the
 * slowest variants. */
static void lose_place(unsigned place, bool for_long)
{
    struct variant_task task;

    variant_in_use->preempt(place, &task);
    for (unsigned i = 0; i < 16; i++) {
        variant_read_lock(place);
        note_age(__atomic_load_n(&shared, __ATOMIC_ACQUIRE));
        variant_read_unlock(place);
        variant_switch(place);
        if (for_long)
            variant_sleep_ns(2000000);
    }
    variant_in_use->resume(place, &task);
}

static void *read_often(void *argument)
{
    unsigned place = (unsigned)(uintptr_t)argument;
    uint64_t done = 0;

    variant_busy(place);
    for (; !__atomic_load_n(&over, __ATOMIC_RELAXED); done++) {
        const struct object *object;

        variant_read_lock(place);
        object = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
        note_age(object);
        if (done % 512 == 0)
            variant_sleep_ns(100000); /* switched out inside the section */
        if (variant_in_use->preempt && done % 64 == 0)
            lose_place(place, done % 1024 == 0);
        note_age(object);
        variant_read_unlock(place);
        variant_switch(place);
        if (done % 4096 == 0) { /* idle for a while */
            variant_idle(place);
            variant_sleep_ns(100000);
            variant_busy(place);
        }
    }
    variant_leave(place);
    return NULL;
}

/* Returns true while time remains or no reader has run, which may take longer on a loaded
 * machine. */
static bool goes_on(uint64_t ns_left)
{
    return ns_left || !__atomic_load_n(&ages[0], __ATOMIC_RELAXED);
}

static void run_crew(uint64_t ns)
{
    pthread_t threads[READERS + WRITERS];

    variant_start(variant_in_use, READERS + WRITERS);
    for (uintptr_t i = 0; i < READERS + WRITERS; i++)
        pthread_create(&threads[i], NULL, i < WRITERS ? write_often : read_often, (void *)i);
    for (; goes_on(ns); ns -= ns < 1000000 ? ns : 1000000)
        variant_sleep_ns(1000000);
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < READERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
}

/* Replaces the object from a signal handler, at any point of the thread of place 0. */
static void update_in_handler(int signal)
{
    struct object *fresh = object_take(), *old;

    (void)signal;
    call_again(0);
    if (!fresh)
        return;
    old = __atomic_exchange_n(&shared, fresh, __ATOMIC_ACQ_REL);
    __atomic_store_n(&old->age, 1, __ATOMIC_SEQ_CST);
    variant_call(0, &old->head, object_aged);
}

/* Runs one place. The writers are signal handlers of the reader's thread. */
static void run_interrupted(uint64_t ns)
{
    struct sigaction action = {.sa_handler = update_in_handler, .sa_flags = SA_RESTART};
    pthread_t reader;

    sigaction(SIGUSR1, &action, NULL);
    variant_start(variant_in_use, 1);
    pthread_create(&reader, NULL, read_often, NULL);
    for (; goes_on(ns); ns -= ns < 100000 ? ns : 100000) {
        variant_sleep_ns(100000);
        pthread_kill(reader, SIGUSR1);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    pthread_join(reader, NULL);
    variant_leave(0); /* again, because a handler may have run while the reader ended */
}

/* Returns the number of objects whose callbacks never ran. Readers cannot find these objects, and
 * they do not wait in `again`. */
static unsigned lost(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < OBJECTS; i++)
        count += objects[i].used && &objects[i] != shared;
    for (struct variant_head *head = again; head; head = head->next)
        count--;
    return count;
}

/* Returns 0: no violation; 1: violations; 2: nothing was tested; 3: callbacks were lost. */
static int torture(const struct variant *variant)
{
    double seconds = torture_seconds(0);
    uint64_t ns = (uint64_t)((seconds > 2 ? seconds / 10 : 0.2) * 1e9), bad = 0;

    shared = object_take();
    variant_in_use = variant;
    if (has_room_for(variant, READERS + WRITERS))
        run_crew(ns);
    else
        run_interrupted(ns);
    variant_stop();
    printf("%-14s ages", variant->name);
    for (unsigned i = 0; i <= AGE_MAX; i++) {
        printf(" %u:%llu", i, (unsigned long long)ages[i]);
        bad += i >= 2 ? ages[i] : 0;
    }
    printf(" lost:%u\n", lost());
    fflush(stdout);
    return bad ? 1 : !ages[0] ? 2 : lost() ? 3 : 0;
}

TEST(no_reader_sees_what_is_two_grace_periods_old)
{
    (void)state;
    for (unsigned i = 0; variants[i]; i++)
        if (variants[i] != &variant_none && in_child(torture, variants[i]))
            fail_msg("%s", variants[i]->name);
}

SUITE()
