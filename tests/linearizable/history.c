/* SPDX-License-Identifier: MIT */
/*
 * Records a history of random operations (history.h), and prints it, a line for each operation:
 *     thread key kind argument second result began ended [key value]...
 *
 *     linearizable_history SUBJECT SEED OPERATIONS_OF_EACH_THREAD
 *     linearizable_history                      lists the names of all subjects
 */
#define _GNU_SOURCE
#include "history.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 4

static const struct subject *const tables[] = {hash_subjects, id_subjects, map_subjects,
                                               route_subjects};

static const struct subject *recorded;
static struct operation *operations[THREADS];
static uint64_t count, seed, values;
static bool over;
static __thread uint64_t yields;

uint64_t fresh_value(void)
{
    return __atomic_add_fetch(&values, 1, __ATOMIC_RELAXED);
}

void maybe_yield(void)
{
    if (random_below(&yields, 6) == 0)
        sched_yield();
}

/* Monotonic across CPUs. Equal times count as concurrent. */
static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void operation_begins(struct operation *operation, enum operation_kind kind, uint64_t key,
                      uint64_t argument)
{
    operation->kind = kind;
    operation->key = key;
    operation->argument = argument;
    operation->began = now();
    __atomic_thread_fence(
        __ATOMIC_SEQ_CST); /* or the operation's loads might be made before the clock was read */
}

void operation_ends(struct operation *operation, uint64_t result)
{
    __atomic_thread_fence(
        __ATOMIC_SEQ_CST); /* or its stores might be seen by others only after the clock was read */
    operation->ended = now();
    operation->result = result;
}

static void *operate(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    uint64_t random = seed * 1000003 + thread;

    yields = random + 7;
    for (uint64_t i = 0; i < count; i++) {
        operations[thread][i].thread = thread;
        recorded->operate(&operations[thread][i], &random);
    }
    return NULL;
}

static void *disturb(void *unused)
{
    uint64_t random = seed + 99;

    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        recorded->disturb(&random);
        sched_yield();
    }
    return unused;
}

static void record(void)
{
    pthread_t threads[THREADS], disturber;

    recorded->make();
    for (uintptr_t i = 0; i < THREADS; i++) {
        operations[i] = calloc(count, sizeof *operations[i]);
        if (!operations[i] || pthread_create(&threads[i], NULL, operate, (void *)i))
            abort();
    }
    if (recorded->disturb && pthread_create(&disturber, NULL, disturb, NULL))
        abort();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    if (recorded->disturb)
        pthread_join(disturber, NULL);
    recorded->unmake();
}

static void print(const struct operation *operation)
{
    static const char *const kinds[] = {
        "lookup", "add",  "unique",       "put",       "swap",          "exchange",    "remove",
        "take",   "scan", "route-lookup", "route-add", "route-replace", "route-remove"};

    printf("%u %llu %s %llu %llu %llu %llu %llu", operation->thread,
           (unsigned long long)operation->key, kinds[operation->kind],
           (unsigned long long)operation->argument, (unsigned long long)operation->second,
           (unsigned long long)operation->result, (unsigned long long)operation->began,
           (unsigned long long)operation->ended);
    for (unsigned i = 0; i < operation->found_count; i++)
        printf(" %llu %llu", (unsigned long long)operation->found[i].key,
               (unsigned long long)operation->found[i].value);
    printf("\n");
}

/* Finds a subject by name; prints all names if `name` is NULL. */
static const struct subject *find_subject(const char *name)
{
    for (unsigned table = 0; table < sizeof tables / sizeof tables[0]; table++)
        for (const struct subject *found = tables[table]; found->name; found++) {
            if (!name)
                printf("%s\n", found->name);
            else if (!strcmp(found->name, name))
                return found;
        }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        find_subject(NULL);
        return argc == 1 ? 0 : 2;
    }
    recorded = find_subject(argv[1]);
    seed = strtoull(argv[2], NULL, 10);
    count = strtoull(argv[3], NULL, 10);
    if (!recorded || !count) {
        fprintf(stderr, "no subject '%s', or no operations\n", argv[1]);
        return 2;
    }
    record();
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (uint64_t i = 0; i < count; i++)
            print(&operations[thread][i]);
    return 0;
}
