/* SPDX-License-Identifier: MIT */
/* The thesis' future work (section 6.1.5, "Impose Level Of Indirection"): the size is stored in
 * front of the array. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <prudence/prudence.h>

struct object {
    uint64_t key, value;
};

struct sized {
    uint64_t size;
    struct object *slots[];
};

static struct sized *table;

static void publish(struct object **array, uint64_t size)
{
    struct sized *sized = prudence_malloc(sizeof *sized + size * sizeof sized->slots[0]);

    sized->size = size;
    for (uint64_t i = 0; i < size; i++)
        sized->slots[i] = array[i];
    prudence_free(array);
    __atomic_store_n(&table, sized, __ATOMIC_RELEASE);
}

static inline struct object *slot_of(uint64_t id)
{
    const struct sized *sized = __atomic_load_n(&table, __ATOMIC_CONSUME);

    return id < sized->size ? __atomic_load_n(&sized->slots[id], __ATOMIC_CONSUME) : NULL;
}

#include "ids_family.h"

const struct subject subject_ids_indirect = {
    "ids-indirect", "array of pointers: the size stands before it", .fill = fill, .run = run};
