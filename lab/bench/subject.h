/* SPDX-License-Identifier: MIT */
/*
 * Subjects to measure. A family says how objects are allocated and reclaimed; a subject is a family
 * over one allocator. Families are in the files subject_*.c; subject_table.h names all subjects.
 *
 * The hot loops of loops.h are compiled once for each family, with the operations as constants:
 * they call functions directly, or in a shared library by one indirect call, for all alike.
 */
#ifndef BENCH_SUBJECT_H
#define BENCH_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

struct prudence_cache;
struct run;
struct worker;

/* Source of objects of one size: a slab cache, or malloc and a size. */
union pool {
    struct prudence_cache *cache;
    size_t size;
};

struct operations {
    union pool (*pool_create)(size_t object_size);
    void (*pool_destroy)(union pool pool); /* waits until the retired objects are free */
    void *(*allocate)(union pool pool);
    void (*retire)(union pool pool, void *object);
    void *(*replace)(union pool pool, void *old);   /* both in one call, one at a time; or NULL */
    void *(*renew)(union pool pool, void *old);     /* the same, in LOOP_UPDATE; or NULL */
    void (*discard)(union pool pool, void *object); /* frees an object that no reader has seen */
    void (*retire_timed)(union pool pool, void *object); /* the callback records the latency */
    void (*poll)(void); /* calls callbacks that are due, if the thread must do so; or NULL */
    void (*read_lock)(
        void); /* of families whose readers name objects: name the one that is linked */
    void (*read_unlock)(void);
    void (*relink)(union pool pool); /* links a new object, and retires the old one; or NULL */
    /* retire_timed records the latency; otherwise the object's next allocation does */
    bool times_callbacks;
};

enum loop {
    LOOP_PAIRS,    /* allocate, touch, retire */
    LOOP_REPLACE,  /* the same, with the objects of the worker's table */
    LOOP_READ,     /* lock, unlock */
    LOOP_UPDATE,   /* replace the entries of the worker's list */
    LOOP_TRAVERSE, /* read all lists */
    LOOP_REUSE,    /* as pairs, and measure how long until memory comes back */
    LOOP_DEMAND,   /* retire a batch and demand it back */
    LOOP_STAY,     /* lock, sleep, unlock */
    LOOP_PRODUCE,  /* allocate and pass on */
    LOOP_CONSUME,  /* receive and retire */
    LOOP_TREE,     /* search and update one tree */
    LOOP_DESTROY,  /* make a pool, fill it, retire all, destroy it */
    LOOP_COUNT,
};

typedef void loop_function(struct worker *worker);

struct family {
    const char *library; /* name of the library that reclaims */
    const char *program; /* program that runs it, in the folder of this one; NULL: this one */
    const char *version; /* the version; NULL: ask library_version */
    const char *(*library_version)(void);
    bool deferring;
    bool floor;           /* no allocator, but what a pair costs at least; for `pairs` alone */
    bool needs_sequences; /* cannot run without restartable sequences */
    bool latent_limited;  /* the option latent_limit makes a difference */
    void (*start)(struct run *run); /* called by main, before the workers */
    void (*thread_start)(void);     /* called by each worker, pinned */
    void (*thread_stop)(void);
    /* called by main: waits until all deferred objects are free */
    void (*quiesce)(void);
    /* returns how many objects are deferred and not yet free */
    uint64_t (*latent)(uint64_t retired);
    void (*report)(struct run *run, json_t *result); /* adds counters */
    const struct operations *operations;
    loop_function *loops[LOOP_COUNT]; /* NULL: the family cannot */
};

struct allocator {
    const char *name;
    const char *preload; /* file for the run's LD_PRELOAD; NULL: none */
    const char *file;    /* part of the name of the file that must then define malloc */
};

struct subject {
    char name[32];
    const struct family *family;
    const struct allocator *allocator;
    const char *options; /* PRUDENCE_OPTIONS of the subject; NULL: none */
};

/* Returns all subjects, and stores their number in *count. */
const struct subject *subjects(unsigned *count);
const struct subject *subject_find(const char *name);

/*
 * Counts objects freed by callbacks: each thread has a separate slot, so counting costs a subject
 * one increment.
 */
extern __thread uint64_t *reclaimed_slot;
uint64_t *reclaimed_slot_make(void);
uint64_t reclaimed_total(void);
uint64_t reclaimed_latent(uint64_t retired); /* for struct family */

static inline void reclaimed_one(void)
{
    uint64_t *slot = reclaimed_slot ? reclaimed_slot : reclaimed_slot_make();

    __atomic_store_n(slot, *slot + 1, __ATOMIC_RELAXED);
}

/* Ends a latency that retire_timed began; called by the thread that frees the object. */
void timed_object_freed(void *object);

#endif /* BENCH_SUBJECT_H */
