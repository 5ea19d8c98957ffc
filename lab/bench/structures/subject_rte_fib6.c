/* SPDX-License-Identifier: MIT */
/* DPDK's trie of 24, then 8 bits a level, with a tree of routes (rte_rib6). Nothing waits for
 * readers, which favours this subject: a freed group of 256 may be reused under one. */
#include <rte_fib6.h>

#include "routes6_input.h"
#include "subject.h"

/* In DPDK 22.11.11 an addition reserves up to 13 groups of 256, and a deletion frees none of
 * them: it searches for the prefixes that still need the groups, and finds the one that it deletes.
 * So whatever the table's size, additions are refused in the end (docs/results-structures.md). */
static const char refusal[] = "rte_fib6_add: no free groups, since rte_fib6_delete keeps them";

static struct rte_fib6 *table;

static void make_table(void)
{
    struct rte_fib6_conf config = {
        .type = RTE_FIB6_TRIE,
        /* of the tree of routes, including inner nodes */
        .max_routes = 2 * (int)subject_size + 256,
        .trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 2 * (uint32_t)subject_size + 256},
    };

    table = rte_fib6_create("bench", -1, &config);
}

static inline uint32_t hop_of(struct bench6_address address)
{
    uint64_t hop = 0;

    rte_fib6_lookup_bulk(table, &address.bytes, &hop, 1);
    return (uint32_t)hop;
}

static void table_add(const input_route *route, uint32_t hop)
{
    if (rte_fib6_add(table, route->address, (uint8_t)route->length, hop))
        subject_refuses(refusal);
}

static void table_remove(const input_route *route)
{
    if (rte_fib6_delete(table, route->address, (uint8_t)route->length))
        subject_refuses(refusal);
}

#include "rte_routes.h"

const struct subject subject_rte_fib6 = {
    "rte_fib6", "longest-prefix match of IPv6: DPDK's trie with a tree of routes", .start = start,
    .fill = fill, .run = run};
