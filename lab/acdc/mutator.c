/* SPDX-License-Identifier: MIT */
#include "mutator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "touch.h"

static void count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/* ----------------------------------------------------------------------------------- operations */

/* Returns whether to time this operation. */
static inline bool is_timed(struct mutator *mutator, enum operation operation)
{
    mutator->times[operation].count++;
    if (!mutator->settings->timed || --mutator->until_timed[operation])
        return false;
    mutator->until_timed[operation] = mutator->settings->timed;
    return true;
}

/* Runs `call`, timed or not. */
#define MEASURED(mutator, operation, call)                                                         \
    do {                                                                                           \
        if (is_timed(mutator, operation)) {                                                        \
            uint64_t began_ = cycles();                                                            \
            call;                                                                                  \
            times_record(&(mutator)->times[operation], began_, cycles());                          \
        } else {                                                                                   \
            call;                                                                                  \
        }                                                                                          \
    } while (0)

/* Times each call, because ticks are few. */
#define MEASURED_ALWAYS(mutator, operation, call)                                                  \
    do {                                                                                           \
        (mutator)->until_timed[operation] = 1;                                                     \
        MEASURED(mutator, operation, call);                                                        \
    } while (0)

/* Returns true for `percent` of all calls, as evenly as possible. */
static bool share_of(unsigned *so_far, unsigned percent)
{
    *so_far += percent;
    if (*so_far < 100)
        return false;
    *so_far -= 100;
    return true;
}

static void stop(struct mutator *mutator)
{
    mutator->out_of_memory = true;
    pace_stop(&mutator->run->pace);
}

static void think(struct mutator *mutator)
{
    for (uint64_t i = 0; i < mutator->settings->think; i++)
        mutator->thought += log(2.0 + (double)(mutator->time + i));
}

/* ----------------------------------------------------------------------------------- allocating */

static bool allocate_object(struct mutator *mutator, const struct draw *draw, struct object *object)
{
    object->size =
        draw->size ? draw->size : draw_size(mutator->settings, draw->size_class, &mutator->chance);
    MEASURED(mutator, OP_ALLOCATE, object->memory = mutator->model->allocate(object->size));
    if (!object->memory)
        return false;
    touch_all(mutator->settings, object);
    think(mutator);
    return true;
}

static void count_allocated(struct mutator *mutator, const struct group *group)
{
    count(&mutator->counters.allocated_objects, group->count);
    count(&mutator->counters.allocated_bytes, group->bytes);
    mutator->class_objects[group->size_class] += group->count;
    mutator->class_bytes[group->size_class] += group->bytes;
}

/* Returns NULL if there is no memory; the run is stopped, and the group's objects so far stay. */
static struct group *allocate_group(struct mutator *mutator, const struct draw *draw,
                                    uint64_t objects)
{
    struct group *group = group_create(&mutator->arena, objects);

    if (!group) {
        stop(mutator);
        return NULL;
    }
    group->size_class = draw->size_class;
    group->tree = draw->tree;
    group->references = group->receivers = 1;
    while (group->count < objects) {
        struct object *object = &group->object[group->count];

        if (!allocate_object(mutator, draw, object)) {
            stop(mutator);
            break;
        }
        group->bytes += object->size;
        group->count++;
    }
    count_allocated(mutator, group);
    return group->count == objects ? group : NULL;
}

static struct holding *hold(struct mutator *mutator, struct group *group, unsigned position)
{
    struct holding *holding = arena_take(&mutator->arena, sizeof *holding);

    if (!holding)
        stop(mutator);
    else
        *holding = (struct holding){.group = group, .position = position};
    return holding;
}

/* Puts the holding into a ring, for its liveness and the delay from now on. */
static void keep(struct mutator *mutator, struct holding **ring, struct holding *holding,
                 uint64_t liveness)
{
    uint64_t ends = mutator->time + liveness + mutator->settings->deallocation_delay;
    struct holding **slot = &ring[ends % mutator->slots];

    holding->dead_from = mutator->time + liveness;
    holding->next = *slot;
    *slot = holding;
}

/* -------------------------------------------------------------------------------------- sharing */

/* Draws the receivers: the thread itself, then others, one by one. */
static unsigned draw_receiver(struct mutator *mutator, unsigned position)
{
    unsigned others = mutator->settings->threads - 1, at, chosen;

    if (position == 0)
        return mutator->number;
    at = (unsigned)chance_between(&mutator->chance, position - 1, others - 1);
    chosen = mutator->others[at];
    mutator->others[at] = mutator->others[position - 1];
    mutator->others[position - 1] = chosen;
    return chosen;
}

static void drop_reference(struct group *group)
{
    __atomic_fetch_sub(&group->references, 1, __ATOMIC_ACQ_REL);
}

/*
 * Puts into our own inbox last: its reference keeps the group while we still read it, and only
 * we close it.
 */
static void share(struct mutator *mutator, struct group *group, const struct draw *draw)
{
    unsigned wanted = receivers(mutator->settings);

    group->shared = true;
    group->references = group->receivers = wanted;
    group->seed = mutator->settings->original ? draw->liveness : chance_next(&mutator->chance);
    for (unsigned i = 1; i <= wanted; i++) {
        unsigned position = i % wanted, receiver = draw_receiver(mutator, position);
        struct holding *holding = hold(mutator, group, position);

        if (!holding)
            return;
        if (!inbox_put(&mutator->run->mutator[receiver].inbox, holding)) {
            arena_give(&mutator->arena, holding, sizeof *holding);
            drop_reference(group);
        }
    }
}

/* Returns the liveness of the received group. */
static uint64_t receive_one(struct mutator *mutator, struct holding *holding)
{
    uint64_t liveness =
        draw_received_liveness(mutator->settings, holding->group->seed, mutator->number);

    mutator->received_objects += holding->group->count;
    keep(mutator, mutator->shared, holding, liveness);
    return liveness;
}

static void receive(struct mutator *mutator, bool close)
{
    struct holding *holding = inbox_take(&mutator->inbox, close), *next;

    for (; holding; holding = next) {
        next = holding->next;
        receive_one(mutator, holding);
    }
}

/* ------------------------------------------------------------------------------------ accessing */

/* With false sharing the receivers own the objects of a group in turn. */
static bool is_mine(const struct settings *settings, const struct holding *holding, size_t at)
{
    return !settings->false_sharing || !holding->group->shared ||
           at % holding->group->receivers == holding->position;
}

static void visit(struct mutator *mutator, const struct holding *holding)
{
    const struct settings *settings = mutator->settings;
    const struct group *group = holding->group;

    for (size_t at = group_next_to_read(group, group->count); at < group->count;
         at = group_next_to_read(group, at)) {
        if (!is_mine(settings, holding, at))
            continue;
        mutator->reads++;
        if (share_of(&mutator->written_so_far, settings->write_ratio)) {
            mutator->writes++;
            touch_write(&group->object[at], settings->write_iterations);
        } else {
            touch_read(settings, &group->object[at]);
        }
    }
}

/* Treats a group as one operation, because accesses to its objects overlap in the processor.
 * Times are per object. */
static void access_group(struct mutator *mutator, const struct holding *holding)
{
    uint64_t before = mutator->reads, began, ended;
    bool timed = is_timed(mutator, OP_ACCESS);

    if (mutator->model->read_lock)
        mutator->model->read_lock();
    began = timed ? cycles() : 0;
    visit(mutator, holding);
    ended = timed ? cycles() : 0;
    if (mutator->model->read_unlock)
        mutator->model->read_unlock();
    mutator->times[OP_ACCESS].count += mutator->reads - before - 1; /* counts objects, not groups */
    if (timed && mutator->reads > before)
        times_record_each(&mutator->times[OP_ACCESS], began, ended, mutator->reads - before);
}

static void access_ring(struct mutator *mutator, struct holding **ring)
{
    for (uint64_t i = 1; i < mutator->slots; i++) {
        const struct holding *holding = ring[(mutator->time + i) % mutator->slots];

        for (; holding; holding = holding->next) {
            if (mutator->time < holding->dead_from)
                access_group(mutator, holding);
        }
    }
}

static void access_all(struct mutator *mutator)
{
    if (!mutator->settings->access)
        return;
    access_ring(mutator, mutator->local);
    access_ring(mutator, mutator->shared);
}

/* -------------------------------------------------------------------------------------- freeing */

static void free_object(struct mutator *mutator, void *memory)
{
    if (mutator->model->defer &&
        share_of(&mutator->deferred_so_far, mutator->settings->deferred_share)) {
        mutator->deferred_objects++;
        MEASURED(mutator, OP_DEFER, mutator->model->defer(memory));
    } else {
        MEASURED(mutator, OP_FREE, mutator->model->free(memory));
    }
}

static void free_group(struct mutator *mutator, struct group *group)
{
    if (!mutator->model->expires) {
        for (size_t at = group_next_to_free(group, group->count); at < group->count;
             at = group_next_to_free(group, at))
            free_object(mutator, group->object[at].memory);
    }
    count(&mutator->counters.freed_objects, group->count);
    count(&mutator->counters.freed_bytes, group->bytes);
    group_destroy(&mutator->arena, group, group->count);
}

static void let_go(struct mutator *mutator, struct holding *holding)
{
    if (__atomic_fetch_sub(&holding->group->references, 1, __ATOMIC_ACQ_REL) == 1)
        free_group(mutator, holding->group);
    arena_give(&mutator->arena, holding, sizeof *holding);
}

static void let_go_of_slot(struct mutator *mutator, struct holding **slot)
{
    struct holding *holding = *slot, *next;

    *slot = NULL;
    for (; holding; holding = next) {
        next = holding->next;
        let_go(mutator, holding);
    }
}

/* ----------------------------------------------------------------------------------- refreshing */

static void refresh_group(struct mutator *mutator, struct holding *holding, unsigned extension)
{
    const struct group *group = holding->group;
    bool done = true;

    holding->refreshed = true;
    for (size_t at = 0; at < group->count && done; at++) {
        void *memory = group->object[at].memory;

        if (group->shared)
            MEASURED(mutator, OP_GLOBAL_REFRESH,
                     done = mutator->model->global_refresh(memory, extension));
        else
            MEASURED(mutator, OP_REFRESH, done = mutator->model->refresh(memory, extension));
    }
    if (!done)
        stop(mutator);
}

/*
 * An object with `i` remaining ticks, including the next one, expires at the i-th tick if it is
 * refreshed with i - 1. An object that ends at the next tick has that date already, unless it is
 * new.
 */
static void refresh_ring(struct mutator *mutator, struct holding **ring)
{
    for (uint64_t i = 1; i < mutator->slots; i++) {
        struct holding *holding = ring[(mutator->time + i) % mutator->slots];

        for (; holding; holding = holding->next) {
            if (i > 1 || !holding->refreshed)
                refresh_group(mutator, holding, (unsigned)(i - 1));
        }
    }
}

/*
 * Refreshes all arrivals until now, and ticks while none can arrive. A thread that ticked global
 * time with an unseen group in its inbox would have said that it needs no more time for the group;
 * the other threads' dates may all have expired when it comes to refresh the group.
 */
static void tick_global_time(struct mutator *mutator)
{
    struct holding *holding, *next;

    while ((holding = inbox_take_or_hold(&mutator->inbox))) {
        for (; holding; holding = next) {
            uint64_t liveness;

            next = holding->next;
            liveness = receive_one(mutator, holding);
            refresh_group(mutator, holding,
                          (unsigned)(liveness + mutator->settings->deallocation_delay - 1));
        }
    }
    MEASURED_ALWAYS(mutator, OP_GLOBAL_TICK, mutator->model->global_tick());
    inbox_release(&mutator->inbox);
}

/* ----------------------------------------------------------------------------------------- time */

static void advance_time(struct mutator *mutator)
{
    const struct model *model = mutator->model;
    bool shared = mutator->settings->shared;

    receive(mutator, false);
    if (!mutator->settings->original)
        access_all(mutator);
    if (model->expires) {
        refresh_ring(mutator, mutator->local);
        MEASURED_ALWAYS(mutator, OP_TICK, model->tick());
        if (shared) {
            refresh_ring(mutator, mutator->shared);
            tick_global_time(mutator);
        }
    }
    mutator->time++;
    let_go_of_slot(mutator, &mutator->local[mutator->time % mutator->slots]);
    let_go_of_slot(mutator, &mutator->shared[mutator->time % mutator->slots]);
    if (pace_advance(&mutator->run->pace, mutator->number))
        trace_sample(mutator->run);
    pace_wait(&mutator->run->pace, mutator->number);
}

/* Runs one round. Returns the bytes allocated. */
static uint64_t allocate_objects(struct mutator *mutator)
{
    const struct settings *settings = mutator->settings;
    uint64_t before = mutator->counters.allocated_bytes;
    struct draw draw = draw_round(settings, &mutator->chance);
    uint64_t objects = objects_of(settings, &draw), sharing = shared_of(settings, &draw, objects);
    struct group *group;
    struct holding *holding;

    mutator->rounds++;
    mutator->liveness_objects[draw.liveness - settings->min_liveness] += objects;
    if (sharing) {
        group = allocate_group(mutator, &draw, sharing);
        if (group)
            share(mutator, group, &draw);
        mutator->shared_objects += sharing;
    }
    if (objects > sharing) {
        group = allocate_group(mutator, &draw, objects - sharing);
        holding = group ? hold(mutator, group, 0) : NULL;
        if (holding)
            keep(mutator, mutator->local, holding, draw.liveness);
    }
    return mutator->counters.allocated_bytes - before;
}

static void work(struct mutator *mutator)
{
    uint64_t bytes = 0;

    while (mutator->time < mutator->settings->duration && !pace_stopped(&mutator->run->pace)) {
        receive(mutator, false);
        bytes += allocate_objects(mutator);
        if (mutator->settings->original)
            access_all(mutator);
        if (bytes >= mutator->settings->time_quantum) {
            advance_time(mutator);
            bytes = 0;
        }
    }
}

/* ------------------------------------------------------------------------------- from the start */

bool mutator_create(struct mutator *mutator, struct run *run, unsigned number)
{
    const struct settings *settings = run->settings;
    uint64_t slots = longest_lifetime(settings) + 1;
    uint64_t livenesses = settings->max_liveness - settings->min_liveness + 1;

    mutator->run = run;
    mutator->model = run->model;
    mutator->settings = settings;
    mutator->number = number;
    mutator->chance = chance_seed(settings->seed, number);
    mutator->slots = slots;
    mutator->local = arena_take(&mutator->arena, slots * sizeof *mutator->local);
    mutator->shared = arena_take(&mutator->arena, slots * sizeof *mutator->shared);
    mutator->others = arena_take(&mutator->arena, settings->threads * sizeof *mutator->others);
    mutator->liveness_objects =
        arena_take(&mutator->arena, livenesses * sizeof *mutator->liveness_objects);
    if (!mutator->local || !mutator->shared || !mutator->others || !mutator->liveness_objects)
        return false;
    memset(mutator->local, 0, slots * sizeof *mutator->local);
    memset(mutator->shared, 0, slots * sizeof *mutator->shared);
    memset(mutator->liveness_objects, 0, livenesses * sizeof *mutator->liveness_objects);
    for (unsigned i = 0; i + 1 < settings->threads; i++)
        mutator->others[i] = i < number ? i : i + 1;
    for (unsigned i = 0; i < OPERATIONS; i++)
        mutator->until_timed[i] = settings->timed;
    inbox_open(&mutator->inbox);
    return true;
}

/* Releases everything: frees it, or leaves it to expire. */
static void drain(struct mutator *mutator)
{
    receive(mutator, true);
    for (uint64_t i = 0; i < mutator->slots; i++) {
        let_go_of_slot(mutator, &mutator->local[i]);
        let_go_of_slot(mutator, &mutator->shared[i]);
    }
}

/*
 * Expires all remaining objects: the longest extension, the two units of a global one, and one more
 * for a thread that sees each advance of global time late. Threads go in step; otherwise they would
 * wait for global ticks of a thread that has ended.
 */
static void expire_all(struct mutator *mutator)
{
    for (uint64_t i = 0; i < longest_lifetime(mutator->settings) + 4; i++) {
        mutator->model->tick();
        mutator->model->global_tick();
        pthread_barrier_wait(&mutator->run->drained);
    }
    mutator->model->collect();
}

void *mutator_main(void *argument)
{
    struct mutator *mutator = argument;
    struct run *run = mutator->run;
    const struct model *model = mutator->model;

    if (model->thread_start && !model->thread_start(mutator->settings, mutator->number))
        stop(mutator);
    pthread_barrier_wait(&run->ready);
    pthread_barrier_wait(&run->started);
    mutator->began_ns = now_ns();
    work(mutator);
    mutator->ended_ns = now_ns();
    receive(mutator, true);
    if (model->pause && !mutator->out_of_memory)
        model->pause();
    pace_finish(&run->pace, mutator->number);
    __atomic_fetch_add(&run->done, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&run->finished);
    pthread_barrier_wait(&run->finished); /* between the two waits main reads the results */
    if (pace_stopped(&run->pace))
        return NULL; /* without memory the process ends */
    if (model->resume)
        model->resume();
    pthread_barrier_wait(&run->drained);
    drain(mutator);
    if (model->expires)
        expire_all(mutator);
    pthread_barrier_wait(&run->drained);
    if (model->thread_stop)
        model->thread_stop();
    return NULL;
}
