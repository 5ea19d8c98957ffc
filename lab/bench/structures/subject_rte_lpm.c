/* SPDX-License-Identifier: MIT */
/* DPDK's DIR-24-8 with a list of rules. No prefix is longer than 24 here, so nothing has to wait
 * for readers. */
#include <rte_lpm.h>

#include <stdlib.h>

#include "routes_input.h"
#include "subject.h"

static struct rte_lpm *table;

static void make_table(void)
{
    const struct rte_lpm_config config = {.max_rules = (uint32_t)subject_size, .number_tbl8s = 256};

    table = rte_lpm_create("bench", -1, &config);
}

static inline uint32_t hop_of(uint32_t address)
{
    uint32_t hop = 0;

    rte_lpm_lookup(table, address, &hop);
    return hop;
}

static void table_add(const input_route *route, uint32_t hop)
{
    if (rte_lpm_add(table, route->address, (uint8_t)route->length, hop))
        abort();
}

static void table_remove(const input_route *route)
{
    if (rte_lpm_delete(table, route->address, (uint8_t)route->length))
        abort();
}

#define ROUTES_AT_ONCE 32
typedef uint32_t bench_address;

static inline bench_address address_from(uint32_t address)
{
    return address;
}

static inline void hops_of(const bench_address *addresses, uint64_t *hops)
{
    uint32_t found[ROUTES_AT_ONCE];

    rte_lpm_lookup_bulk(table, addresses, found, ROUTES_AT_ONCE);
    for (unsigned i = 0; i < ROUTES_AT_ONCE; i++)
        hops[i] = found[i] & RTE_LPM_LOOKUP_SUCCESS ? found[i] & 0xffffff : 0;
}

#include "rte_routes.h"

const struct subject subject_rte_lpm = {
    "rte_lpm", "longest-prefix match: DPDK's DIR-24-8 with a list of rules", .start = start,
    .fill = fill, .run = run};
const struct subject subject_rte_lpm_many = {
    "rte_lpm-many", "longest-prefix match: DPDK's DIR-24-8, 32 addresses at once", .start = start,
    .fill = fill, .run = run_many};
