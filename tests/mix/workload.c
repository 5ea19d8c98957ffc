/* SPDX-License-Identifier: MIT */
/*
 * One run. Each allocation and each release is one step of time, so a run repeats on any machine,
 * except for interrupted sequences that give up.
 */
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>

#include "measure.h"
#include "posix.h"
#include "slab/node.h"
#include "slab/node_choose.h"
#include "slab/preflush.h"
#include "slab/reclaim/decay.h"

#define LOOK      64 /* steps between two measurements of the fragmentation */
#define CALLBACKS 10 /* in a batch, as in Linux (blimit) */

const struct mix mixes[] = {
    {"file", 256, 4000, 200, 24, 100}, /* inodes, dentries, files opened and closed in bunches */
    {"socket", 192, 1000, 8, 14, 100}, /* one connection after another */
    {"tree", 64, 6000, 60, 45, 100},   /* nodes replaced when a tree is balanced */
    {"folder", 256, 4000, 200, 24,
     2}, /* files of a directory, which go together except for a few */
    {"drop", 192, 6000, 1000, 100,
     2}, /* directories that are filled, and removed almost as a whole */
};

const char *mix_name(unsigned index)
{
    return index < sizeof mixes / sizeof mixes[0] ? mixes[index].name : NULL;
}

/* Callbacks. The grace period of those from `first` to before `ready` is over, and of those from
 * there to before `end` it is not. */
struct queue {
    void **object;
    uint64_t first, ready, end, room;
};

struct state {
    const struct run *run;
    struct prudence_domain *domain;
    struct prudence_cache *cache;
    void **live; /* in the order of allocation, if neighbours go together */
    unsigned count;
    uint32_t random;
    uint64_t allocated, steps; /* so far */
    struct queue queue;        /* used by classic */
    double fragmentation;
    uint64_t looks;
};

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static bool is_idle(unsigned cpu)
{
    (void)cpu;
    return true;
}

/* Calls the oldest callbacks that are ready, at most `most`. */
static void call_ready(struct state *state, uint64_t most)
{
    struct queue *queue = &state->queue;

    for (; most && queue->first < queue->ready; most--)
        prudence_cache_free(state->cache, queue->object[queue->first++]);
}

static void end_grace_period(struct state *state)
{
    prudence_manual_advance(state->domain);
    state->queue.ready = state->queue.end;
    if (!state->run->pace)
        call_ready(state, UINT64_MAX);
}

static void look(struct state *state)
{
    struct prudence_cache_stats stats;

    prudence_cache_stats(state->cache, &stats);
    if (!state->count)
        return;
    state->fragmentation += (double)(stats.slabs_now * stats.slab_size) /
                            ((double)state->count * state->run->mix->size);
    state->looks++;
}

static void step(struct state *state)
{
    const struct run *run = state->run;

    state->steps++;
    if (state->steps % run->period == 0)
        end_grace_period(state);
    if (run->pace && state->steps % run->pace == 0)
        call_ready(state, CALLBACKS);
    if (run->preflush && run->idle && state->steps % run->idle == 0)
        preflush_work();
    if (state->steps % LOOK == 0)
        look(state);
}

/* Moves pending callbacks to the array's beginning, or enlarges the array if moving would not
 * pay. */
static void make_room(struct queue *queue)
{
    if (queue->first > queue->room / 2) {
        memmove(queue->object, queue->object + queue->first,
                (queue->end - queue->first) * sizeof *queue->object);
        queue->ready -= queue->first;
        queue->end -= queue->first;
        queue->first = 0;
        return;
    }
    queue->room = queue->room ? 2 * queue->room : 1024;
    queue->object = realloc(queue->object, queue->room * sizeof *queue->object);
    if (!queue->object)
        die("the queue of callbacks");
}

static void call_later(struct queue *queue, void *object)
{
    if (queue->end == queue->room)
        make_room(queue);
    queue->object[queue->end++] = object;
}

static void release(struct state *state, void *object, bool deferred)
{
    if (!deferred)
        prudence_cache_free(state->cache, object);
    else if (state->run->classic)
        call_later(&state->queue, object);
    else
        prudence_cache_free_deferred(state->cache, object);
}

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return *random >> 8;
}

static bool is_of_100(uint32_t *random, unsigned share)
{
    return next_random(random) % 100 < share;
}

static void make(struct state *state)
{
    void *object = prudence_cache_alloc(state->cache);

    if (!object)
        die("prudence_cache_alloc");
    state->live[state->count++] = object;
    state->allocated++;
    step(state);
}

/* Releases any one object. */
static void let_any_go(struct state *state)
{
    unsigned victim = next_random(&state->random) % state->count;
    void *object = state->live[victim];

    state->live[victim] = state->live[--state->count];
    release(state, object, is_of_100(&state->random, state->run->mix->deferred));
    step(state);
}

/* Releases some objects that were allocated one after another. */
static void let_neighbours_go(struct state *state)
{
    const struct mix *mix = state->run->mix;
    unsigned first = next_random(&state->random) % state->count, kept = first, i = first;

    for (; i < state->count && i < first + mix->burst; i++) {
        void *object = state->live[i];

        if (is_of_100(&state->random, mix->stay)) {
            state->live[kept++] = object;
            continue;
        }
        release(state, object, is_of_100(&state->random, mix->deferred));
        step(state);
    }
    memmove(state->live + kept, state->live + i, (state->count - i) * sizeof *state->live);
    state->count -= i - kept;
}

static void work(struct state *state)
{
    const struct mix *mix = state->run->mix;

    while (state->allocated < state->run->allocations) {
        unsigned target = next_random(&state->random) % mix->live;

        for (unsigned i = 0; i < mix->burst && state->count < target; i++)
            make(state);
        if (mix->stay < 100 && state->count > target)
            let_neighbours_go(state);
        for (unsigned i = 0; i < mix->burst && mix->stay == 100 && state->count > target; i++)
            let_any_go(state);
    }
}

/* Makes the run independent of the machine: one CPU, no thread of the library, no clock. */
static void prepare(const struct run *run)
{
    pin_to_present_cpu();
    prudence_option_set("background", "0");
    prudence_option_set("decay", "0");
    decay_enabled = false;
    posix_idle_inject(is_idle);
    preflush_enabled = run->preflush;
    slab_spares_latent = run->spares;
}

/* Gives all free memory back, so that only the choice of slabs keeps the rest in use. */
static void let_free_go(struct state *state)
{
    for (unsigned i = 0; i < 2; i++) { /* the first round closes open batches */
        end_grace_period(state);
        call_ready(state, UINT64_MAX);
        prudence_cache_shrink(state->cache);
    }
}

static void set_number(json_t *json, const char *key, double value)
{
    json_object_set_new(json, key, json_real(value));
}

#define SET(field) set_number(json, #field, (double)stats.field)

static json_t *counts(struct state *state)
{
    struct prudence_cache_stats stats, left;
    json_t *json;

    prudence_cache_stats(state->cache, &stats);
    let_free_go(state);
    prudence_cache_stats(state->cache, &left);
    json = json_object();
    SET(allocations), SET(hits), SET(hits_after_merge), SET(refills), SET(flushed_objects);
    SET(object_cache_churns), SET(overflowed_objects), SET(preflushed_objects);
    SET(slab_churns), SET(slabs_peak);
    set_number(json, "bytes_left", (double)(left.slabs_now * left.slab_size));
    set_number(json, "bytes_live", (double)(left.objects_live * state->run->mix->size));
    set_number(json, "f_t_mean", state->looks ? state->fragmentation / (double)state->looks : 0.0);
    return json;
}

json_t *run_mix(const void *argument)
{
    const struct run *run = argument;
    struct state state = {.run = run, .random = run->seed};
    struct prudence_cache_attr attr = {.size = sizeof attr};

    prepare(run);
    state.domain = prudence_domain_create("mix", PRUDENCE_DOMAIN_MANUAL, NULL);
    attr.domain = state.domain;
    attr.object_cache_bytes = (size_t)run->cached * run->mix->size;
    state.cache = prudence_cache_create(run->mix->name, run->mix->size, &attr);
    state.live = calloc(run->mix->live, sizeof *state.live);
    if (!state.domain || !state.cache || !state.live)
        die("the run");
    work(&state);
    return counts(&state);
}
