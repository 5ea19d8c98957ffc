/* SPDX-License-Identifier: MIT */
/*
 * Types that the files of the benchmark share.
 *
 *   struct config     the work of one run; made by the command line, sent to the child as JSON
 *   struct subject    the measured code: a family (how objects are reclaimed) over an allocator
 *   struct scenario   the work of a run's threads, and which of them count
 *   struct run        one run, in a separate child process
 *   struct worker     one thread of a run
 *
 * Runs never share a process, because subjects leave threads, caches and fragmented heaps. The
 * parent (main.c, runner.c) only starts children and computes with their results.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "histogram.h"
#include "measure.h"
#include "subject.h"

#define CACHE_LINE  64
#define MAX_THREADS 256
#define MIN_SIZE    16     /* the head of a callback: liburcu, Concurrency Kit, classic */
#define MAX_SIZE    131072 /* the largest size class */
#define MAX_LIVE    65536  /* a place is a 16-bit number */

#define MIXED_SIZES 16 /* a power of two */

#define LONGEST_SLICE 256 /* most pairs between two checks of the phase, one at a time */

/* Object that a pair retires: the one that it allocated, or one of the live ones. */
enum order { ORDER_TIGHT, ORDER_IN_ORDER, ORDER_RANDOM };

struct config {
    char scenario[16];
    char subject[32];
    size_t size;
    unsigned threads;      /* writers */
    unsigned readers;      /* threads that only read */
    unsigned batch;        /* objects allocated, and then retired */
    double seconds;        /* measured time; 0 with `pairs` */
    uint64_t pairs;        /* of each writer; 0: until the time ends */
    uint64_t limit;        /* resident bytes; more counts as out of memory */
    uint64_t latent_limit; /* Prudence's option of that name; 0: the default */
    unsigned stay_ms;      /* time that a reader stays in a section */
    unsigned cycles;       /* rounds of create, fill, destroy */
    unsigned objects;      /* in each round */
    unsigned length;       /* of each writer's list */
    enum order order;      /* pairs: the object to retire */
    unsigned live;         /* of each writer; 0 with ORDER_TIGHT */
    unsigned updates;      /* tree: percent of the operations */
    uint64_t keys;         /* tree: number of possible keys */
    bool demand;           /* latency: retire a batch and demand it back */
    bool mixed;            /* recycle: many sizes, instead of `size` */
    bool progress;         /* print a line on standard error during the run */
    char options[160];     /* PRUDENCE_OPTIONS of the run */
};

/* The phases of a run; the main thread sets them, and the loops watch them. */
enum phase { PHASE_WARM, PHASE_MEASURED, PHASE_OVER };

struct list {
    struct node *head; /* written by its writer, read by the readers */
} __attribute__((aligned(CACHE_LINE)));

struct worker {
    struct run *run;
    union pool pool; /* copy of the run's pool, to be near */
    loop_function *loop;
    enum loop kind;
    unsigned index; /* among the writers, or among the readers */
    int cpu;
    enum phase phase; /* the phase that it measures now */
    bool finished;    /* it completed the work before the time was over */
    pthread_t thread;

    void **live;     /* LOOP_REPLACE: the objects */
    void *hand;      /* the last object that `replace` returned, for the next update */
    uint64_t random; /* state of a generator */
    unsigned place;  /* index in run->places of the next slice */

    uint64_t done;    /* the scenario's count; written by the worker, sampled by main */
    uint64_t retired; /* objects; as above */
    uint64_t errors;  /* times that a reader found something else than a live node */

    uint64_t done_before; /* at the start of this phase */
    uint64_t wall_ns;     /* of the last phase */
    uint64_t cpu_ns;
} __attribute__((aligned(2 * CACHE_LINE)));

struct run {
    struct config config;
    const struct subject *subject;
    const struct scenario *scenario;
    union pool pool;
    /* one for each size, with `mixed`; otherwise all equal `pool` */
    union pool mixed_pools[MIXED_SIZES];
    int phase; /* enum phase; atomic */
    bool out_of_memory;
    pthread_barrier_t start;
    struct histogram *latencies;
    struct list *lists; /* one for each writer */
    struct ring *rings; /* one for each pair of writers */
    struct tree *tree;  /* shared by all writers */
    /* LOOP_REPLACE: places of the next objects to replace; workers never write it */
    const uint16_t *places;
    unsigned place_count; /* number of places at which a slice may begin */
    unsigned workers;
    struct worker worker[2 * MAX_THREADS];
};

#define COUNTS(loop) (1u << (loop))
#define HELPERS      (1u << LOOP_COUNT) /* threads other than workers and main: call_rcu's */

struct scenario {
    const char *name;
    const char *summary;
    const char *subjects; /* patterns; the default subjects */
    const char *options;  /* keys of its options beyond the common ones */
    const char *pair;     /* the unit that it counts */
    bool deferring;       /* excludes plain allocators */
    bool compares;        /* takes floors, and divides by the best plain pair */
    bool samples;         /* the result includes memory over time */
    bool warms_up;
    bool times_objects; /* uses struct timed_object */
    size_t min_size;
    struct config defaults;
    enum loop (*writer)(const struct config *config, unsigned index);
    enum loop reader;
    unsigned counted; /* loops whose work and wall time count */
    unsigned charged; /* loops whose CPU time is charged to that work */
    const char *(*refuse)(const struct config *config); /* why it cannot run, or NULL */
    void (*prepare)(struct run *run);
};

extern const struct scenario *const scenarios[]; /* ended by NULL */
const struct scenario *scenario_find(const char *name);

const char *order_name(unsigned order); /* NULL after the last */

json_t *config_to_json(const struct config *config);
int config_from_json(struct config *config, json_t *json);

/* crew.c: runs the threads of a run, watches memory, and adds the measurements to `result`. */
void crew_work(struct run *run, json_t *result);

/* child.c: the hidden subcommands, run in the child. Return an exit status. */
int child_run(int argc, char **argv); /* argv[1]: the configuration */
int child_probe(int argc, char **argv);

/* Functions that loops call now and then. */
void worker_out_of_memory(struct worker *worker);

static inline bool worker_goes_on(struct worker *worker)
{
    return __atomic_load_n(&worker->run->phase, __ATOMIC_RELAXED) == (int)worker->phase;
}

static inline void worker_did(struct worker *worker, uint64_t done, uint64_t retired)
{
    __atomic_store_n(&worker->done, worker->done + done, __ATOMIC_RELAXED);
    __atomic_store_n(&worker->retired, worker->retired + retired, __ATOMIC_RELAXED);
}

#endif /* BENCH_BENCH_H */
