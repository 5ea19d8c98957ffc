/* SPDX-License-Identifier: MIT */
/* A table of ids, shared by id_table.c and fork. */
#ifndef TABLES_ID_TABLE_H
#define TABLES_ID_TABLE_H

#include <prudence/id_table.h>

#include "base/list.h"
#include "os/os.h"
#include "tables/free_ids.h"
#include "tables/views.h"

struct id_table {
    struct prudence_id_table public; /* the view, written under the lock */
    struct views views;
    uint64_t ids_most; /* constant */
    struct list link;  /* protected by tables_lock */

    struct os_lock lock __attribute__((aligned(CACHE_LINES_APART)));
    struct free_ids free; /* protected, like the rest, by the lock */
    uint64_t objects;     /* also read without the lock */
    uint64_t grows;
};

#endif /* TABLES_ID_TABLE_H */
