/* SPDX-License-Identifier: MIT */
/* Order as in System V IPC (thesis, Figure 6.4). The size is stored after the array, and loaded
 * before. */
#include <stddef.h>
#include <stdint.h>

struct object {
    uint64_t key, value;
};

static struct {
    uint64_t size;
    struct object **array;
} table;

static void publish(struct object **array, uint64_t size)
{
    __atomic_store_n(&table.array, array, __ATOMIC_RELEASE);
    __atomic_store_n(&table.size, size, __ATOMIC_RELEASE);
}

static inline struct object *slot_of(uint64_t id)
{
    if (id >= __atomic_load_n(&table.size, __ATOMIC_ACQUIRE))
        return NULL;
    return __atomic_load_n(&__atomic_load_n(&table.array, __ATOMIC_CONSUME)[id], __ATOMIC_CONSUME);
}

#include "ids_family.h"

const struct subject subject_ids_ordered = {
    "ids-ordered", "array of pointers: the size, then the array", .fill = fill, .run = run};
