/* SPDX-License-Identifier: MIT */
/* DPDK's trie of 24, then 8 bits a level, with a hash table of rules. Nothing waits for readers,
 * which favours this subject: a freed group of 256 may be reused under one. */
#include <rte_lpm6.h>

#include <stdlib.h>

#include "routes6_input.h"
#include "subject.h"

static struct rte_lpm6 *table;

static void make_table(void)
{
    const struct rte_lpm6_config config = {.max_rules = (uint32_t)subject_size + 256,
                                           .number_tbl8s = 2 * (uint32_t)subject_size + 256};

    table = rte_lpm6_create("bench", -1, &config);
}

static inline uint32_t hop_of(struct bench6_address address)
{
    uint32_t hop = 0;

    rte_lpm6_lookup(table, address.bytes, &hop);
    return hop;
}

static void table_add(const input_route *route, uint32_t hop)
{
    if (rte_lpm6_add(table, route->address, (uint8_t)route->length, hop))
        abort();
}

static void table_remove(const input_route *route)
{
    if (rte_lpm6_delete(table, route->address, (uint8_t)route->length))
        abort();
}

#include "rte_routes.h"

const struct subject subject_rte_lpm6 = {
    "rte_lpm6", "longest-prefix match of IPv6: DPDK's trie with a table of rules", .start = start,
    .fill = fill, .run = run};
