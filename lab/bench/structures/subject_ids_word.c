/* SPDX-License-Identifier: MIT */
/* <prudence/id_table.h>: address and size in one word. */
#include <prudence/id_table.h>

#include <stdlib.h>

struct object {
    uint64_t key, value;
};

static struct prudence_id_table *table;

static void publish(struct object **array, uint64_t size)
{
    uint32_t id;

    table = prudence_id_table_create("bench", NULL);
    for (uint64_t i = 0; i < size; i++)
        if (prudence_id_table_add(table, array[i], &id) || id != i)
            abort();
    prudence_free(array);
}

static inline struct object *slot_of(uint64_t id)
{
    return prudence_id_table_lookup(table, (uint32_t)id);
}

#include "ids_family.h"

const struct subject subject_ids_word = {
    "ids-word", "array of pointers: prudence_id_table, both in one word", .fill = fill, .run = run};
