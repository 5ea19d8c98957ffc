/* SPDX-License-Identifier: MIT */
/*
 * Every object has one owner. Threads allocate, free and defer objects of one cache on a few CPUs,
 * and sleepers on the same CPUs wake up often, so that threads lose their CPU at any instruction.
 * An owner writes its number into the object with one exchange: finding another number there means
 * that the object was handed out twice.
 *
 *     guest_pairs [THREADS [CPUS [SECONDS]]]      (4 1 1)
 *
 * Exit status 0: each object had one owner; 1: an object had two, or lost its owner's number.
 */
#define _GNU_SOURCE
#include "guest.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MOST 64
#define HELD         24   /* objects that a thread holds at most */
#define LEAST        5000 /* operations of each thread, however slow the machine is */

struct object {
    _Atomic uint64_t
        owner; /* 0 while free; the library keeps it, because the cache has a constructor */
    char rest[56];
};

struct worker {
    pthread_t thread;
    uint64_t number; /* counted from 1 */
    uint64_t operations;
};

static struct prudence_cache *cache;
static unsigned cpus = 1;
static atomic_bool time_is_over, all_done;
static _Atomic uint64_t twice, lost, no_memory;

static void construct(void *object, void *unused)
{
    (void)unused;
    memset(object, 0, sizeof(struct object));
}

static struct object *take(uint64_t number)
{
    struct object *object = prudence_cache_alloc(cache);

    if (!object)
        atomic_fetch_add(&no_memory, 1);
    else if (atomic_exchange(&object->owner, number) != 0)
        atomic_fetch_add(&twice, 1);
    return object;
}

static void give(struct object *object, uint64_t number, bool deferred)
{
    if (atomic_exchange(&object->owner, 0) != number)
        atomic_fetch_add(&lost, 1);
    if (deferred)
        prudence_cache_free_deferred(cache, object);
    else
        prudence_cache_free(cache, object);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct object *held[HELD] = {NULL};
    uint64_t random = worker->number, n = 0;

    guest_pin(0, cpus);
    for (; n < LEAST || !atomic_load_explicit(&time_is_over, memory_order_relaxed); n++) {
        uint64_t draw = guest_random(&random);
        struct object **slot = &held[draw % HELD];

        if (!*slot) {
            *slot = take(worker->number);
        } else {
            give(*slot, worker->number, (draw >> 8) % 4 == 0);
            *slot = NULL;
        }
    }
    for (unsigned i = 0; i < HELD; i++)
        if (held[i])
            give(held[i], worker->number, false);
    worker->operations = n;
    return NULL;
}

static void *wake_up_often(void *cpu)
{
    const struct timespec pause = {0, 50000};

    guest_pin((unsigned)(uintptr_t)cpu, 1);
    while (!atomic_load(&all_done))
        nanosleep(&pause, NULL);
    return NULL;
}

/* Prints the counts when a signal ends the process. The library aborts on a double free, and a
 * corrupt heap often crashes. */
static void say_and_end(int number)
{
    char text[128];
    int length =
        snprintf(text, sizeof text,
                 "pairs: signal %d after handed out twice %llu, owner lost %llu  CORRUPT\n", number,
                 (unsigned long long)twice, (unsigned long long)lost);

    if (write(STDOUT_FILENO, text, (size_t)length) < 0)
        _exit(GUEST_WRONG);
    signal(number, SIG_DFL);
    raise(number);
}

static uint64_t run(unsigned threads, double seconds)
{
    static struct worker workers[THREADS_MOST];
    pthread_t sleepers[THREADS_MOST];
    uint64_t operations = 0;

    for (unsigned i = 0; i < cpus; i++)
        if (pthread_create(&sleepers[i], NULL, wake_up_often, (void *)(uintptr_t)i) != 0)
            abort();
    for (unsigned i = 0; i < threads; i++) {
        workers[i].number = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    usleep((useconds_t)(seconds * 1e6));
    atomic_store(&time_is_over, true);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        operations += workers[i].operations;
    }
    atomic_store(&all_done, true);
    for (unsigned i = 0; i < cpus; i++)
        pthread_join(sleepers[i], NULL);
    return operations;
}

int main(int count, char **arguments)
{
    const struct prudence_cache_attr attributes = {.size = sizeof attributes,
                                                   .constructor = construct};
    unsigned threads = count > 1 ? (unsigned)atoi(arguments[1]) : 4;
    double seconds = count > 3 ? atof(arguments[3]) : 1;
    uint64_t operations;

    cpus = count > 2 ? (unsigned)atoi(arguments[2]) : 1;
    if (threads < 1 || threads > THREADS_MOST || cpus < 1 || cpus > THREADS_MOST) {
        fprintf(stderr, "usage: guest_pairs [THREADS [CPUS [SECONDS]]]\n");
        return GUEST_WRONG;
    }
    if (!guest_pin(0, cpus)) {
        printf("pairs: this process may not choose its CPUs\n");
        return GUEST_SKIPPED;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGABRT, say_and_end);
    signal(SIGSEGV, say_and_end);
    cache = prudence_cache_create("pairs", sizeof(struct object), &attributes);
    if (!cache) {
        perror("pairs: no cache");
        return GUEST_WRONG;
    }
    operations = run(threads, seconds);
    printf(
        "pairs: %u threads on %u CPUs: %llu operations, handed out twice %llu, owner lost %llu, no "
        "memory %llu%s\n",
        threads, cpus, (unsigned long long)operations, (unsigned long long)twice,
        (unsigned long long)lost, (unsigned long long)no_memory, twice || lost ? "  CORRUPT" : "");
    return twice || lost || no_memory ? GUEST_WRONG : GUEST_RIGHT;
}
