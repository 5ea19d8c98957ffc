/* SPDX-License-Identifier: MIT */
/*
 * The hot loops, as templates: FAMILY_LOOPS(name) in a family's file compiles each of them with
 * that family's operations, a constant, so that the calls in them are direct.
 *
 * Every loop works in slices, and checks the phase (worker_goes_on) after each. It touches one byte
 * of each object, as a user would at least.
 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

#define TEMPLATE static inline __attribute__((always_inline))
#define SLICE    LONGEST_SLICE

/* Bytes of the callback's head in an object, which the peers overwrite at once. */
#define HEAD_SIZE 16

struct node {
    char head[HEAD_SIZE];
    struct node *next;
    uint64_t value; /* NODE_VALUE while this is a node */
};

#define NODE_VALUE UINT64_C(0x6e6f6465206f6620)

struct timed_object {
    char head[HEAD_SIZE];
    uint64_t retired_at; /* now_ns(), or 0: not timed */
};

TEMPLATE void touch(void *object)
{
    *(volatile char *)object = 1;
}

TEMPLATE void *allocate_touched(struct worker *worker, const struct operations *op, union pool pool)
{
    void *object = op->allocate(pool);

    if (__builtin_expect(!object, 0))
        worker_out_of_memory(worker);
    else
        touch(object);
    return object;
}

/* ------------------------------------------------------------------------------------ pairs */

TEMPLATE bool slice_of_pairs(struct worker *worker, const struct operations *op, union pool pool)
{
    for (unsigned i = 0; i < SLICE; i++) {
        void *object = allocate_touched(worker, op, pool);

        if (!object)
            return false;
        op->retire(pool, object);
    }
    worker_did(worker, SLICE, SLICE);
    return true;
}

/* Acts as a writer that always holds the object of its next update. */
TEMPLATE bool slice_by_hand(struct worker *worker, const struct operations *op, union pool pool)
{
    void *hand = worker->hand;

    for (unsigned i = 0; i < SLICE; i++) {
        touch(hand);
        hand = op->replace(pool, hand);
        if (__builtin_expect(!hand, 0))
            return worker_out_of_memory(worker), false;
    }
    worker->hand = hand;
    worker_did(worker, SLICE, SLICE);
    return true;
}

TEMPLATE bool one_batch(struct worker *worker, const struct operations *op, union pool pool,
                        void **objects, unsigned batch)
{
    unsigned count = 0;

    while (count < batch && (objects[count] = allocate_touched(worker, op, pool)))
        count++;
    for (unsigned i = 0; i < count; i++)
        op->retire(pool, objects[i]);
    worker_did(worker, count, count);
    return count == batch;
}

TEMPLATE void loop_pairs(struct worker *worker, const struct operations *op)
{
    const struct config *config = &worker->run->config;
    uint64_t end = config->pairs ? worker->done + config->pairs : UINT64_MAX;
    void **objects = calloc(config->batch, sizeof *objects);
    union pool pool = worker->pool;
    bool memory = true;

    if (op->replace && !worker->hand)
        memory = (worker->hand = allocate_touched(worker, op, pool));
    while (memory && worker_goes_on(worker) && worker->done < end) {
        if (config->batch > 1)
            memory = one_batch(worker, op, pool, objects, config->batch);
        else if (op->replace)
            memory = slice_by_hand(worker, op, pool);
        else
            memory = slice_of_pairs(worker, op, pool);
    }
    worker->finished = worker->done >= end;
    free(objects);
}

#include "loop_replace.h"
#include "loop_tree.h"

/* ---------------------------------------------------------------------------------- readers */

TEMPLATE void loop_read(struct worker *worker, const struct operations *op)
{
    while (worker_goes_on(worker)) {
        for (unsigned i = 0; i < SLICE; i++) {
            op->read_lock();
            __asm__ __volatile__("" ::: "memory");
            op->read_unlock();
        }
        worker_did(worker, SLICE, 0);
    }
}

TEMPLATE void loop_stay(struct worker *worker, const struct operations *op)
{
    unsigned stay_ms = worker->run->config.stay_ms;
    struct timespec stay = {.tv_sec = stay_ms / 1000, .tv_nsec = stay_ms % 1000 * 1000000L};

    while (worker_goes_on(worker)) {
        if (op->relink)
            op->relink(worker->pool);
        op->read_lock();
        if (op->relink)
            op->relink(worker->pool); /* so that the reader keeps a retired object, as others do */
        nanosleep(&stay, NULL);
        op->read_unlock();
        worker_did(worker, 1, 0);
    }
}

/* ------------------------------------------------------------ lists, as in the paper's 3.5 */

TEMPLATE struct node *filled_node(struct node *node, struct node *next)
{
    if (node) {
        node->next = next;
        node->value = NODE_VALUE;
    }
    return node;
}

TEMPLATE bool fill_list(struct worker *worker, const struct operations *op, struct list *list)
{
    struct node *first = NULL;

    for (unsigned i = 0; i < worker->run->config.length; i++) {
        struct node *node = filled_node(allocate_touched(worker, op, worker->pool), first);

        if (!node)
            return false;
        first = node;
    }
    __atomic_store_n(&list->head, first, __ATOMIC_RELEASE);
    return true;
}

/* Replaces one entry after another, repeatedly. */
TEMPLATE void loop_update(struct worker *worker, const struct operations *op)
{
    struct list *list = &worker->run->lists[worker->index];
    struct node **link = &list->head;
    union pool pool = worker->pool;
    void *hand = op->renew ? allocate_touched(worker, op, pool) : NULL;

    if (!fill_list(worker, op, list))
        return;
    while (worker_goes_on(worker)) {
        for (unsigned i = 0; i < SLICE; i++) {
            struct node *old = *link;
            struct node *node =
                filled_node(hand ? hand : allocate_touched(worker, op, pool), old->next);

            if (!node)
                return;
            __atomic_store_n(link, node, __ATOMIC_RELEASE);
            if (op->renew)
                hand = op->renew(pool, old);
            else
                op->retire(pool, old);
            link = node->next ? &node->next : &list->head;
        }
        worker_did(worker, SLICE, SLICE);
    }
    if (hand)
        op->discard(pool, hand);
}

TEMPLATE void loop_traverse(struct worker *worker, const struct operations *op)
{
    unsigned lists = worker->run->config.threads;

    for (unsigned next = worker->index; worker_goes_on(worker); next++) {
        struct list *list = &worker->run->lists[next % lists];
        uint64_t errors = 0;

        op->read_lock();
        for (const struct node *node = __atomic_load_n(&list->head, __ATOMIC_CONSUME); node;
             node = __atomic_load_n(&node->next, __ATOMIC_CONSUME))
            errors += node->value != NODE_VALUE;
        op->read_unlock();
        worker->errors += errors;
        worker_did(worker, 1, 0);
    }
}

/* ---------------------------------------------------------------------- from retire to reuse */

#define TIMED_ONE_IN 16 /* reading the clock for each object would throttle the storm */

TEMPLATE void loop_reuse(struct worker *worker, const struct operations *op)
{
    union pool pool = worker->pool;

    while (worker_goes_on(worker)) {
        for (unsigned i = 0; i < SLICE; i++) {
            struct timed_object *object = allocate_touched(worker, op, pool);

            if (!object)
                return;
            if (!op->times_callbacks)
                timed_object_freed(object);
            object->retired_at = i % TIMED_ONE_IN ? 0 : now_ns();
            op->retire_timed(pool, object);
        }
        worker_did(worker, SLICE, SLICE);
    }
}

/* Most objects kept while others are demanded back, because those may come after all free ones. */
#define DEMANDED 16384

/* Retires `batch` new objects, timed. Returns false if there is no memory. */
TEMPLATE bool retire_some(struct worker *worker, const struct operations *op, unsigned batch,
                          struct timed_object **objects)
{
    for (unsigned i = 0; i < batch; i++) {
        objects[i] = allocate_touched(worker, op, worker->pool);
        if (!objects[i])
            return false;
        if (!op->times_callbacks)
            timed_object_freed(objects[i]); /* one of an earlier round */
    }
    for (unsigned i = 0; i < batch; i++) {
        objects[i]->retired_at = now_ns();
        op->retire_timed(worker->pool, objects[i]);
    }
    return true;
}

/* Allocates, and keeps the objects, until all retired ones have come back; then frees them. */
TEMPLATE void demand_back(struct worker *worker, const struct operations *op, uint64_t retired,
                          struct timed_object **kept)
{
    struct histogram *latencies = worker->run->latencies;
    unsigned count = 0;

    while (count < DEMANDED && histogram_count(latencies) < retired) {
        kept[count] = allocate_touched(worker, op, worker->pool);
        if (!kept[count])
            break;
        timed_object_freed(kept[count]);
        kept[count++]->retired_at = 0;
    }
    while (count)
        op->discard(worker->pool, kept[--count]);
}

/* Waits only, because callbacks free the objects. */
TEMPLATE void await_callbacks(struct worker *worker, const struct operations *op, uint64_t retired)
{
    while (histogram_count(worker->run->latencies) < retired && worker_goes_on(worker)) {
        if (op->poll)
            op->poll();
    }
}

TEMPLATE void loop_demand(struct worker *worker, const struct operations *op)
{
    unsigned batch = worker->run->config.batch;
    struct timed_object **objects = calloc(batch + DEMANDED, sizeof *objects);

    while (worker_goes_on(worker) && retire_some(worker, op, batch, objects)) {
        worker_did(worker, batch, batch);
        if (op->times_callbacks)
            await_callbacks(worker, op, worker->done);
        else
            demand_back(worker, op, worker->done, objects);
    }
    free(objects);
}

/* --------------------------------------------------------------- retire on A, allocate on B */

#define RING_SLOTS 1024
#define SPINS      256 /* loads of the other's index before the CPU is offered to others */

struct ring {
    uint64_t head __attribute__((aligned(CACHE_LINE))); /* objects put, by the producer */
    uint64_t tail __attribute__((aligned(CACHE_LINE))); /* objects taken, by the consumer */
    void *slot[RING_SLOTS] __attribute__((aligned(CACHE_LINE)));
};

/* Waits until `other` differs from `blocked`. Returns false if the run is over. */
TEMPLATE bool ring_wait(struct worker *worker, uint64_t *other, uint64_t blocked)
{
    for (unsigned spins = 1; __atomic_load_n(other, __ATOMIC_ACQUIRE) == blocked; spins++) {
        if (spins % SPINS)
            continue;
        if (!worker_goes_on(worker))
            return false;
        sched_yield();
    }
    return true;
}

/* Returns the pool of the object of that number; its consumer computes the same. Sizes follow
 * each other in no order. */
TEMPLATE union pool pool_of(const struct worker *worker, uint64_t number)
{
    return worker->run
        ->mixed_pools[number * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MIXED_SIZES - 1)];
}

TEMPLATE void loop_produce(struct worker *worker, const struct operations *op)
{
    struct ring *ring = &worker->run->rings[worker->index / 2];

    while (worker_goes_on(worker)) {
        uint64_t head = ring->head;
        void *object = allocate_touched(worker, op, pool_of(worker, head));

        if (!object || !ring_wait(worker, &ring->tail, head - RING_SLOTS))
            return;
        ring->slot[head % RING_SLOTS] = object;
        __atomic_store_n(&ring->head, head + 1, __ATOMIC_RELEASE);
    }
}

TEMPLATE void loop_consume(struct worker *worker, const struct operations *op)
{
    struct ring *ring = &worker->run->rings[worker->index / 2];

    while (worker_goes_on(worker)) {
        uint64_t tail = ring->tail;

        if (!ring_wait(worker, &ring->head, tail))
            return;
        op->retire(pool_of(worker, tail), ring->slot[tail % RING_SLOTS]);
        __atomic_store_n(&ring->tail, tail + 1, __ATOMIC_RELEASE);
        worker_did(worker, 1, 1);
    }
}

/* -------------------------------------------------------------------- create, fill, destroy */

TEMPLATE void loop_destroy(struct worker *worker, const struct operations *op)
{
    const struct config *config = &worker->run->config;
    void **objects = calloc(config->objects, sizeof *objects);
    bool memory = true;

    for (unsigned i = 0; memory && i < config->cycles && worker_goes_on(worker); i++) {
        union pool pool = op->pool_create(config->size);
        uint64_t begin;

        memory = one_batch(worker, op, pool, objects, config->objects);
        begin = now_ns();
        op->pool_destroy(pool);
        histogram_record(worker->run->latencies, now_ns() - begin);
    }
    worker->finished = true;
    free(objects);
}

/* ---------------------------------------------------------------------------- instantiation */

#define FAMILY_LOOP(name, loop)                                                                    \
    static void name##_##loop(struct worker *worker)                                               \
    {                                                                                              \
        loop_##loop(worker, &name##_operations);                                                   \
    }

/* Compiles every loop with `static const struct operations NAME_operations`. */
#define FAMILY_LOOPS(name)                                                                         \
    FAMILY_LOOP(name, pairs)                                                                       \
    FAMILY_LOOP(name, replace)                                                                     \
    FAMILY_LOOP(name, read)                                                                        \
    FAMILY_LOOP(name, update)                                                                      \
    FAMILY_LOOP(name, traverse)                                                                    \
    FAMILY_LOOP(name, reuse)                                                                       \
    FAMILY_LOOP(name, demand)                                                                      \
    FAMILY_LOOP(name, stay)                                                                        \
    FAMILY_LOOP(name, produce)                                                                     \
    FAMILY_LOOP(name, consume)                                                                     \
    FAMILY_LOOP(name, tree)                                                                        \
    FAMILY_LOOP(name, destroy)

/* Members of struct family: those operations and loops. */
#define FAMILY_MEMBERS(name)                                                                       \
    .operations = &name##_operations,                                                              \
    .loops = {                                                                                     \
        [LOOP_PAIRS] = name##_pairs,       [LOOP_REPLACE] = name##_replace,                        \
        [LOOP_READ] = name##_read,         [LOOP_UPDATE] = name##_update,                          \
        [LOOP_TRAVERSE] = name##_traverse, [LOOP_REUSE] = name##_reuse,                            \
        [LOOP_DEMAND] = name##_demand,     [LOOP_STAY] = name##_stay,                              \
        [LOOP_PRODUCE] = name##_produce,   [LOOP_CONSUME] = name##_consume,                        \
        [LOOP_TREE] = name##_tree,         [LOOP_DESTROY] = name##_destroy,                        \
    }

/* Variant for families whose readers name single objects: the loops that search nothing. */
#define NAMING_LOOPS(name)                                                                         \
    FAMILY_LOOP(name, pairs)                                                                       \
    FAMILY_LOOP(name, replace)                                                                     \
    FAMILY_LOOP(name, read)                                                                        \
    FAMILY_LOOP(name, stay)

#define NAMING_MEMBERS(name)                                                                       \
    .operations = &name##_operations, .loops = {                                                   \
                                          [LOOP_PAIRS] = name##_pairs,                             \
                                          [LOOP_REPLACE] = name##_replace,                         \
                                          [LOOP_READ] = name##_read,                               \
                                          [LOOP_STAY] = name##_stay,                               \
    }

#endif /* BENCH_LOOPS_H */
