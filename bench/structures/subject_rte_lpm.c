/* SPDX-License-Identifier: MIT */
/* DPDK's DIR-24-8 with a list of rules. It allows one writer at a time, so updates take a
 * mutex. No prefix is longer than 24 here, so nothing has to wait for readers. */
#include "dpdk.h"

#include <pthread.h>
#include <rte_lpm.h>

#include "routes_input.h"
#include "subject.h"

static struct rte_lpm *table;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void start(void)
{
    routes_prepare();
    dpdk_start();
}

/* Made with the first route, so that the initial memory counts. */
static void make_table(void)
{
    const struct rte_lpm_config config = {.max_rules = (uint32_t)subject_size, .number_tbl8s = 256};

    table = rte_lpm_create("bench", -1, &config);
    if (!table)
        abort();
}

static inline void read_begin(void)
{
}

static inline void read_end(void)
{
}

static inline uint32_t hop_of(uint32_t address)
{
    uint32_t hop = 0;

    rte_lpm_lookup(table, address, &hop);
    return hop;
}

static void route_add(const struct bench_route *route, uint32_t hop)
{
    pthread_mutex_lock(&writer);
    if (!table)
        make_table();
    if (rte_lpm_add(table, route->address, (uint8_t)route->length, hop))
        abort();
    pthread_mutex_unlock(&writer);
}

static void route_remove(const struct bench_route *route)
{
    pthread_mutex_lock(&writer);
    if (rte_lpm_delete(table, route->address, (uint8_t)route->length))
        abort();
    pthread_mutex_unlock(&writer);
}

#define INPUT(name) bench_##name
#define ADDRESSES   ROUTES_ADDRESSES
#include "routes_family.h"

const struct subject subject_rte_lpm =
    ROUTES_SUBJECT("rte_lpm", "longest-prefix match: DPDK's DIR-24-8 with a list of rules", start,
                   nothing, nothing);
