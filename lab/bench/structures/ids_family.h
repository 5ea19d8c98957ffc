/* SPDX-License-Identifier: MIT */
/*
 * Lookups in an array of pointers that grows, published in one of three ways (docs/adr/0066), as a
 * template: the file that includes this has defined publish(array, size) and `struct object
 * *slot_of(id)`, NULL for one out of range. It measures lookups only; updates of the three are
 * alike.
 */
#ifndef BENCH_STRUCTURES_IDS_FAMILY_H
#define BENCH_STRUCTURES_IDS_FAMILY_H

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "subject.h"

/* Fills all ids of the table, whose arrays all come from the same allocator; a lookup meant to
 * miss uses an id that is out of range. */
static void fill(uint64_t size)
{
    struct object **array = prudence_aligned_alloc(4096, size * sizeof *array);

    for (uint64_t id = 0; id < size; id++) {
        array[id] = malloc(sizeof **array);
        array[id]->value = id;
    }
    publish(array, size);
}

static inline void look_up(struct work *work, uint64_t random)
{
    const bool hit = is_hit(work, random);
    const struct object *object;

    prudence_read_lock();
    object = slot_of(below(random, work->size) + (hit ? 0 : work->size));
    if (object) {
        work->sum += object->value;
        work->found++;
    }
    prudence_read_unlock();
}

static void run(struct work *work)
{
    run_operations(work, look_up);
}

#endif /* BENCH_STRUCTURES_IDS_FAMILY_H */
