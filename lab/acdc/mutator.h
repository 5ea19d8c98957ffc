/* SPDX-License-Identifier: MIT */
/*
 * A mutator: one thread of ACDC, with its clock, its chance and its objects (thesis, Algorithms 1
 * to 4).
 *
 *      until the clock has reached the duration
 *          receive shared groups from the inbox
 *          draw a size class and a liveness, allocate the objects that the formula says
 *          when a time quantum of bytes has been allocated: advance time
 *
 *      advance time: access live objects; free ended ones, or refresh the others, and tick
 *
 * Groups wait in a ring, by the time at which their lifetime ends; slot (t + i) modulo the ring's
 * length holds those with i remaining ticks. Local and shared groups have a ring each. Everything
 * here belongs to the thread, except `counters`, which the trace reads, and the shared groups.
 */
#ifndef ACDC_MUTATOR_H
#define ACDC_MUTATOR_H

#include <stdbool.h>

#include "arena.h"
#include "draw.h"
#include "group.h"
#include "inbox.h"
#include "run.h"
#include "times.h"

/* Each counter is written by one thread, and read by any. */
struct counters {
    uint64_t allocated_objects, allocated_bytes;
    uint64_t freed_objects, freed_bytes; /* their lifetime has ended, for all threads */
};

struct mutator {
    _Alignas(64) struct counters counters;
    struct inbox inbox;

    _Alignas(64) struct run *run;
    const struct model *model;
    const struct settings *settings;
    unsigned number;
    uint64_t time;
    struct chance chance;
    struct holding **local, **shared; /* rings of `slots` lists */
    uint64_t slots;
    unsigned *others; /* the numbers of all other threads, in some order */
    struct arena arena;

    /* Events of the run. */
    uint64_t rounds, shared_objects, received_objects, deferred_objects;
    uint64_t reads, writes; /* of objects */
    uint64_t class_objects[MOST_SIZE + 1], class_bytes[MOST_SIZE + 1];
    uint64_t *liveness_objects; /* as drawn; index 0 is the smallest liveness */
    struct times times[OPERATIONS];
    uint64_t began_ns, ended_ns;

    uint64_t until_timed[OPERATIONS];         /* countdowns */
    unsigned deferred_so_far, written_so_far; /* in percent of an object */
    double thought;
    bool out_of_memory; /* the model, or ACDC itself, got no memory */
};

/* Returns false if there is no memory. */
bool mutator_create(struct mutator *mutator, struct run *run, unsigned number);

/* The thread's main. Returns with `run->finished` passed and all objects gone. */
void *mutator_main(void *mutator);

static inline uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif /* ACDC_MUTATOR_H */
