/* SPDX-License-Identifier: MIT */
/* A table of ids: what its functions (id_table.c) and fork know. */
#ifndef STRUCTURES_ID_TABLE_H
#define STRUCTURES_ID_TABLE_H

#include <prudence/id_table.h>

#include "base/list.h"
#include "os/os.h"
#include "structures/free_ids.h"
#include "structures/views.h"

struct id_table {
    struct prudence_id_table public; /* its view: written under the lock */
    struct views views;              /* constant */
    uint64_t ids_most;               /* constant */
    struct list link;                /* under tables_lock */

    struct os_lock lock __attribute__((aligned(CACHE_LINES_APART)));
    struct free_ids free; /* this and the rest: under the lock */
    uint64_t objects;     /* read by all */
    uint64_t grows;
};

#endif /* STRUCTURES_ID_TABLE_H */
