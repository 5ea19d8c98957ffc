/* SPDX-License-Identifier: MIT */
/* DPDK's DIR-24-8 with a tree of routes (rte_rib). */
#include <rte_fib.h>

#include <stdlib.h>

#include "routes_input.h"
#include "subject.h"

static struct rte_fib *table;

static void make_table(void)
{
    struct rte_fib_conf config = {
        .type = RTE_FIB_DIR24_8,
        .max_routes = 2 * (int)subject_size, /* of the tree of routes, including inner nodes */
        .dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = 256},
    };

    table = rte_fib_create("bench", -1, &config);
}

static inline uint32_t hop_of(uint32_t address)
{
    uint64_t hop = 0;

    rte_fib_lookup_bulk(table, &address, &hop, 1);
    return (uint32_t)hop;
}

static void table_add(const input_route *route, uint32_t hop)
{
    if (rte_fib_add(table, route->address, (uint8_t)route->length, hop))
        abort();
}

static void table_remove(const input_route *route)
{
    if (rte_fib_delete(table, route->address, (uint8_t)route->length))
        abort();
}

#include "rte_routes.h"

const struct subject subject_rte_fib = {
    "rte_fib", "longest-prefix match: DPDK's DIR-24-8 with a tree of routes", .start = start,
    .fill = fill, .run = run};
