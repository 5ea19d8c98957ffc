/* SPDX-License-Identifier: MIT */
/*
 * What the files of the benchmark share.
 *
 *   struct config     what one run is to do; made by the command line, sent to the child as JSON
 *   struct subject    who is measured: a family (how objects are reclaimed) over an allocator
 *   struct scenario   what the threads of a run do, and which of them count
 *   struct run        one run, in a child process of its own
 *   struct worker     one thread of a run
 *
 * A run never shares its process with another: subjects leave threads, caches and fragmented heaps
 * behind. The parent (main.c, runner.c) only starts children and does arithmetic on what they say.
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
#define MIN_SIZE    16 /* the head of a callback: liburcu, Concurrency Kit, classic */
#define MAX_SIZE    32768
#define MAX_LIVE    65536 /* a place is a number of 16 bits */

#define MIXED_SIZES 16 /* a power of two */

#define LONGEST_SLICE 256 /* pairs between two looks at the phase, one at a time */

/* Which object a pair retires: the one that it allocated, or one of the live ones. */
enum order { ORDER_TIGHT, ORDER_IN_ORDER, ORDER_RANDOM };

struct config {
    char scenario[16];
    char subject[32];
    size_t size;
    unsigned threads;      /* writers */
    unsigned readers;      /* threads that only read */
    unsigned batch;        /* objects allocated, then as many retired */
    double seconds;        /* measured; 0 with `pairs` */
    uint64_t pairs;        /* of each writer; 0: until the time is over */
    uint64_t limit;        /* resident bytes; more is out of memory */
    uint64_t latent_limit; /* the option of that name of Prudence; 0: its default */
    unsigned stay_ms;      /* of a reader in its section */
    unsigned cycles;       /* of create, fill, destroy */
    unsigned objects;      /* in each of them */
    unsigned length;       /* of each writer's list */
    enum order order;      /* pairs: what is retired */
    unsigned live;         /* of each writer; 0 with ORDER_TIGHT */
    unsigned updates;      /* tree: percent of the operations */
    uint64_t keys;         /* tree: that there may be */
    bool demand;           /* latency: retire a batch and want it back */
    bool mixed;            /* recycle: of many sizes, instead of `size` */
    bool progress;         /* a line on standard error while it runs */
    char options[160];     /* PRUDENCE_OPTIONS of the run */
};

/* The phases of a run; its main thread sets them, the loops watch them. */
enum phase { PHASE_WARM, PHASE_MEASURED, PHASE_OVER };

struct list {
    struct node *head; /* written by its writer, read by the readers */
} __attribute__((aligned(CACHE_LINE)));

struct worker {
    struct run *run;
    union pool pool; /* the run's, here to be near */
    loop_function *loop;
    enum loop kind;
    unsigned index; /* among the writers, or among the readers */
    int cpu;
    enum phase phase; /* the one it measures now */
    bool finished;    /* it did what was asked before the time was over */
    pthread_t thread;

    void **live;     /* LOOP_REPLACE: its objects */
    void *hand;      /* what `replace` gave last, for the next update */
    uint64_t random; /* state of a generator */
    unsigned place;  /* where in run->places it goes on */

    uint64_t done;    /* what its scenario counts; written by the worker, sampled by main */
    uint64_t retired; /* objects; as above */
    uint64_t errors;  /* a reader saw something that was not a live node */

    uint64_t done_before; /* at the start of this phase */
    uint64_t wall_ns;     /* of the last phase */
    uint64_t cpu_ns;
} __attribute__((aligned(2 * CACHE_LINE)));

struct run {
    struct config config;
    const struct subject *subject;
    const struct scenario *scenario;
    union pool pool;
    union pool mixed_pools[MIXED_SIZES]; /* one for each size, with `mixed`; else all are `pool` */
    int phase;                           /* enum phase; atomic */
    bool out_of_memory;
    pthread_barrier_t start;
    struct histogram *latencies;
    struct list *lists;     /* one for each writer */
    struct ring *rings;     /* one for each pair of writers */
    struct tree *tree;      /* of all writers */
    const uint16_t *places; /* LOOP_REPLACE: which one is replaced next; never written by workers */
    unsigned place_count;   /* of those at which a slice may begin */
    unsigned workers;
    struct worker worker[2 * MAX_THREADS];
};

#define COUNTS(loop) (1u << (loop))
#define HELPERS      (1u << LOOP_COUNT) /* threads that are neither workers nor main: call_rcu's */

struct scenario {
    const char *name;
    const char *summary;
    const char *subjects; /* patterns; those measured when none are named */
    const char *options;  /* keys of the options that it has beyond the common ones */
    const char *pair;     /* what it counts */
    bool deferring;       /* plain allocators have no part in it */
    bool samples;         /* memory over time belongs to the result */
    bool warms_up;
    bool times_objects; /* by struct timed_object */
    size_t min_size;
    struct config defaults;
    enum loop (*writer)(const struct config *config, unsigned index);
    enum loop reader;
    unsigned counted; /* loops whose work and wall time are counted */
    unsigned charged; /* loops whose CPU time is charged to that work */
    const char *(*refuse)(const struct config *config); /* why it cannot be run, or NULL */
    void (*prepare)(struct run *run);
};

extern const struct scenario *const scenarios[]; /* ended by NULL */
const struct scenario *scenario_find(const char *name);

const char *order_name(unsigned order); /* NULL behind the last */

json_t *config_to_json(const struct config *config);
int config_from_json(struct config *config, json_t *json);

/* crew.c: runs the threads of a run, watches its memory, and adds what was measured to `result`. */
void crew_work(struct run *run, json_t *result);

/* child.c: the hidden subcommands, in the child. Return an exit status. */
int child_run(int argc, char **argv); /* argv[1]: the configuration */
int child_probe(int argc, char **argv);

/* What loops call now and then. */
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
