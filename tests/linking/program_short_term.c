/* SPDX-License-Identifier: MIT */
/*
 * Objects of short-term memory pass from the threads that have had dates for them to the one whose
 * date ends last, and from that one to the next owner of their memory. Built with ThreadSanitizer
 * by test_thread_sanitizer.py; the library is not. RACE, in the environment:
 *
 *   date     a thread reads an object after its only date for it has expired
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/scm.h>

#define ROUNDS 40
#define COUNT  200

/* first index: 0 by dates of two threads, 1 by global time */
static unsigned long *objects[2][ROUNDS][COUNT];
static int turn; /* relaxed, so that ThreadSanitizer derives no order from it */
static unsigned long sum;

static void wait_for(int wanted)
{
    while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != wanted)
        ;
}

static void pass_on(void)
{
    __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
}

static void write_all(unsigned long **of, unsigned long value)
{
    for (int i = 0; i < COUNT; i++)
        *of[i] = value;
}

static void read_all(unsigned long **of)
{
    for (int i = 0; i < COUNT; i++)
        sum += *of[i];
}

static void refresh_all(unsigned long **of)
{
    for (int i = 0; i < COUNT; i++)
        if (scm_refresh(of[i], 0))
            abort();
}

/* Reuses the memory of ended objects, with as many allocations as that needs. */
static void use_memory_again(void)
{
    for (int i = 0; i < COUNT; i++) {
        unsigned long *again = prudence_malloc(64);

        *again = 1;
        prudence_free(again);
    }
}

static void end_all(void)
{
    if (scm_tick() || scm_tick())
        abort();
    scm_collect();
}

static pthread_mutex_t published = PTHREAD_MUTEX_INITIALIZER;

/* This thread's dates end first. It has written to the objects, so the next owner of the memory
 * must come after that. */
static void *has_dates_first(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(4 * round + 1);
        pthread_mutex_lock(&published);
        refresh_all(objects[0][round]);
        write_all(objects[0][round], 2);
        read_all(objects[0][round]);
        pthread_mutex_unlock(&published);
        pass_on();
        wait_for(4 * round + 3);
        read_all(objects[0][round]);
        end_all();
        if (getenv("RACE"))
            write_all(objects[0][round], 3);
        pass_on();
    }
    return unused;
}

static void *has_dates_last(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(4 * round);
        pthread_mutex_lock(&published);
        for (int i = 0; i < COUNT; i++)
            objects[0][round][i] = scm_malloc(64);
        refresh_all(objects[0][round]);
        write_all(objects[0][round], 1);
        pthread_mutex_unlock(&published);
        pass_on();
        wait_for(4 * round + 2);
        pass_on();
        wait_for(4 * round + 4);
        end_all();
        use_memory_again();
    }
    return unused;
}

/* By global time only one thread gives dates; the other one's tick says that it is ready. */
static void *reads_by_global_time(void *unused)
{
    scm_register_thread();
    pass_on();
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(2 * round + 3);
        pthread_mutex_lock(&published);
        pthread_mutex_unlock(&published);
        read_all(objects[1][round]);
        for (int i = 0; i < 4; i++)
            scm_global_tick();
        pass_on();
    }
    scm_unregister_thread();
    return unused;
}

static void *gives_by_global_time(void *unused)
{
    scm_register_thread();
    pass_on();
    wait_for(2);
    for (int round = 0; round < ROUNDS; round++) {
        wait_for(2 * round + 2);
        pthread_mutex_lock(&published);
        for (int i = 0; i < COUNT; i++) {
            unsigned long *object = objects[1][round][i] = scm_malloc(64);

            *object = 1;
            scm_global_refresh(object, 0);
        }
        pthread_mutex_unlock(&published);
        pass_on();
        while (__atomic_load_n(&turn, __ATOMIC_RELAXED) != 2 * round + 4)
            scm_global_tick();
        for (int i = 0; i < 4; i++)
            scm_global_tick();
        scm_collect();
        use_memory_again();
    }
    scm_unregister_thread();
    return unused;
}

static void run(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t threads[2];

    turn = 0;
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    struct scm_region_info regions;
    struct scm_mem_info memory;

    run(has_dates_first, has_dates_last);
    run(reads_by_global_time, gives_by_global_time);
    scm_get_mem_info(&memory);
    scm_get_region_info(&regions);
    puts(memory.num_alloc && !regions.regions ? "done" : "wrong figures");
    return 0;
}
