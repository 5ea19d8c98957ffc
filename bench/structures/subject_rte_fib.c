/* SPDX-License-Identifier: MIT */
/* DPDK's DIR-24-8 beside a tree of routes (rte_rib). It allows one writer at a time, so
 * updates take a mutex. */
#include "dpdk.h"

#include <pthread.h>
#include <rte_fib.h>

#include "routes_input.h"
#include "subject.h"

static struct rte_fib *table;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void start(void)
{
    routes_prepare();
    dpdk_start();
}

/* Made with the first route, so that the initial memory counts. */
static void make_table(void)
{
    struct rte_fib_conf config = {
        .type = RTE_FIB_DIR24_8,
        .max_routes = 2 * (int)subject_size, /* of the tree of routes, including inner nodes */
        .dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_4B, .num_tbl8 = 256},
    };

    table = rte_fib_create("bench", -1, &config);
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
    uint64_t hop = 0;

    rte_fib_lookup_bulk(table, &address, &hop, 1);
    return (uint32_t)hop;
}

static void route_add(const struct bench_route *route, uint32_t hop)
{
    pthread_mutex_lock(&writer);
    if (!table)
        make_table();
    if (rte_fib_add(table, route->address, (uint8_t)route->length, hop))
        abort();
    pthread_mutex_unlock(&writer);
}

static void route_remove(const struct bench_route *route)
{
    pthread_mutex_lock(&writer);
    if (rte_fib_delete(table, route->address, (uint8_t)route->length))
        abort();
    pthread_mutex_unlock(&writer);
}

#define INPUT(name) bench_##name
#define ADDRESSES   ROUTES_ADDRESSES
#include "routes_family.h"

const struct subject subject_rte_fib =
    ROUTES_SUBJECT("rte_fib", "longest-prefix match: DPDK's DIR-24-8 with a tree of routes", start,
                   nothing, nothing);
