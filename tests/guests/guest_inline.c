/* SPDX-License-Identifier: MIT */
/*
 * The sequences that programs inline (<prudence/sequences.h>), on a line of the program's own and
 * on those of a cache.
 *
 * On its own line nothing but an interruption makes a sequence give up: the stack has more objects
 * than there are threads, and the ring has room for all. Threads and a sleeper share one CPU, so
 * sequences are interrupted at any instruction. In the end each object is there once, and the words
 * count what the threads counted, so an interrupted sequence has done nothing.
 *
 * Where the library uses no sequences, those on the cache's lines do nothing, whatever the kernel
 * is like, and the inlined functions work all the same.
 *
 * Exit status 0: so it is; 1: otherwise; 77: nothing is inlined here.
 */
#define _GNU_SOURCE
#include <prudence/inline.h>

#include "guest.h"

#if !PRUDENCE_INLINED

int main(void)
{
    printf("inline: nothing is inlined here\n");
    return GUEST_SKIPPED;
}

#else

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define THREADS 4
#define OBJECTS (THREADS + 2)
#define TURNS   20000 /* of each thread */
#define PHASES  5000  /* at most */
#define ENOUGH  10    /* interruptions of each sequence */
#define TRIES   1000  /* of a sequence that must do nothing */
#define ROUNDS  UINT64_C(3000)

struct object {
    _Atomic uintptr_t owner; /* 0 while on the stack */
};

struct worker {
    pthread_t thread;
    uintptr_t number; /* counted from 1 */
};

static struct object objects[OBJECTS];
static void *stack[1 + OBJECTS];        /* NULL below the first */
static void *ring[1 + THREADS * TURNS]; /* the same */
static struct prudence_inline_line line;
static struct prudence_inline_cache words = {.lines = &line, .cpus = 1};
static atomic_bool all_done;
static _Atomic uint64_t twice, pops_left, pushes_left, appends_left; /* the latter: given up */
static unsigned wrong;

static void expect(bool so, const char *what)
{
    if (so)
        return;
    printf("inline: not so: %s\n", what);
    wrong++;
}

/* ------------------------------------------------------------------------ a line of its own */

static struct object *pop(void)
{
    struct object *object;

    while (!(object = prudence_sequence_pop(&words.lines, &words, prudence_inline_rseq)))
        atomic_fetch_add(&pops_left, 1);
    return object;
}

static void push(struct object *object)
{
    while (!prudence_sequence_push(&words.lines, &words, object, prudence_inline_rseq))
        atomic_fetch_add(&pushes_left, 1);
}

static void append(void *entry)
{
    while (!prudence_sequence_append(&words.lines, &words, entry, prudence_inline_rseq))
        atomic_fetch_add(&appends_left, 1);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    for (uintptr_t turn = 0; turn < TURNS; turn++) {
        struct object *object = pop();

        if (atomic_exchange(&object->owner, worker->number) != 0)
            atomic_fetch_add(&twice, 1);
        append((void *)(turn * THREADS + worker->number));
        if (atomic_exchange(&object->owner, 0) != worker->number)
            atomic_fetch_add(&twice, 1);
        push(object);
    }
    return NULL;
}

static void *wake_up_often(void *unused)
{
    const struct timespec pause = {0, 50000};

    while (!atomic_load(&all_done))
        nanosleep(&pause, NULL);
    return unused;
}

static void line_open(void)
{
    for (unsigned i = 0; i < OBJECTS; i++)
        stack[1 + i] = &objects[i];
    line = (struct prudence_inline_line){
        .stack_word = OBJECTS,
        .pop_from = stack + 1,
        .stack_limit = OBJECTS,
        .ring_stop = (uint64_t)THREADS * TURNS,
        .ring_turn = (uintptr_t)(ring + 1),
        .stack = stack + 1,
    };
}

/* Entries of one thread are in the order in which it appended them. */
static bool ring_is_right(void)
{
    uintptr_t next[THREADS] = {0};

    for (unsigned i = 0; i < THREADS * TURNS; i++) {
        uintptr_t entry = (uintptr_t)ring[1 + i], thread = (entry - 1) % THREADS;

        if (entry - thread - 1 != next[thread]++ * THREADS)
            return false;
    }
    return true;
}

static bool stack_is_right(void)
{
    unsigned found = 0;

    for (unsigned i = 0; i < OBJECTS; i++)
        found |= 1u << ((struct object *)stack[1 + i] - objects);
    return found == (1u << OBJECTS) - 1 && !stack[0];
}

static void phase(void)
{
    struct worker workers[THREADS];

    line_open();
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    expect(line.stack_word == ((uint64_t)THREADS * TURNS << 16 | OBJECTS),
           "the word counts all pops and objects");
    expect(line.ring_tail == line.ring_stop, "the tail counts all that was appended");
    expect(stack_is_right(), "each object is on the stack once");
    expect(ring_is_right(), "the ring has each entry once, in order");
}

static bool are_interrupted(void)
{
    return pops_left >= ENOUGH && pushes_left >= ENOUGH && appends_left >= ENOUGH;
}

static void on_a_line_of_its_own(void)
{
    unsigned phases = 0;
    pthread_t sleeper;

    if (pthread_create(&sleeper, NULL, wake_up_often, NULL) != 0)
        abort();
    while (!wrong && phases < PHASES && !are_interrupted()) {
        phase();
        phases++;
    }
    atomic_store(&all_done, true);
    pthread_join(sleeper, NULL);
    printf("inline: %u phases; interrupted: pop %llu, push %llu, append %llu\n", phases,
           (unsigned long long)pops_left, (unsigned long long)pushes_left,
           (unsigned long long)appends_left);
    expect(!twice, "an object has one owner");
    expect(are_interrupted(), "sequences are interrupted");
}

/* ------------------------------------------------------------------------------- of a cache */

static unsigned served(struct prudence_cache *cache, void *object)
{
    void *const *lines = prudence_inline_lines(cache);
    const struct prudence_inline_cache *its = prudence_inline_cache_of(cache);
    unsigned count = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        void *top = prudence_sequence_pop(lines, its, prudence_inline_rseq);

        count += top != NULL;
        while (top && !prudence_sequence_push(lines, its, top, prudence_inline_rseq))
            ;
        if (top)
            continue;
        count += prudence_sequence_push(lines, its, object, prudence_inline_rseq);
        count += prudence_sequence_append(lines, its, object, prudence_inline_rseq);
    }
    return count;
}

static void on_a_cache(bool open)
{
    struct prudence_cache *cache = prudence_cache_create("inline", 64, NULL);
    struct prudence_cache_stats stats;
    void *spare = prudence_cache_alloc(cache);

    for (unsigned i = 0; i < ROUNDS; i++) {
        prudence_cache_free(cache, prudence_cache_alloc(cache));
        prudence_cache_free_deferred(cache, prudence_cache_alloc(cache));
        spare = prudence_cache_replace(cache, spare);
        expect(spare != NULL, "there is memory");
    }
    expect(!prudence_cache_stats(cache, &stats) && stats.allocations == 3 * ROUNDS + 1 &&
               stats.frees == ROUNDS && stats.deferred_frees == 2 * ROUNDS,
           "the library counts all operations");
    if (open)
        prudence_cache_free(cache, prudence_cache_alloc(cache));
    else
        expect(served(cache, spare) == 0, "closed lines serve nothing");
    expect(!open ||
               (prudence_inline_cache_of(cache)->extent && prudence_inline_is_of(cache, spare)),
           "the cache has a window");
    prudence_cache_free(cache, spare);
    expect(prudence_cache_destroy(cache) == 0, "nothing is left");
}

int main(void)
{
    char percpu[256];
    bool open;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!guest_pin(0, 1)) {
        printf("inline: this process may not choose its CPUs\n");
        return GUEST_SKIPPED;
    }
    prudence_free(prudence_malloc(1));
    guest_percpu(percpu, sizeof percpu);
    open = guest_begins_with(percpu, "sequences") || guest_begins_with(percpu, "rseq");
    printf("inline: percpu %s\n", percpu);
    if (open)
        on_a_line_of_its_own();
    on_a_cache(open);
    return wrong ? GUEST_WRONG : GUEST_RIGHT;
}

#endif
