/* SPDX-License-Identifier: MIT */
/*
 * DPDK's tables of routes, as a template: the file that includes this has included one of the
 * inputs (routes_input.h, routes6_input.h), and has defined
 *     table, make_table()                       NULL if it cannot be made
 *     table_add(route, hop), table_remove(route)
 *     uint32_t hop_of(address)                  0: there is no route
 * The tables allow one writer at a time, so updates take a mutex; readers announce nothing.
 */
#ifndef BENCH_STRUCTURES_RTE_ROUTES_H
#define BENCH_STRUCTURES_RTE_ROUTES_H

#include <pthread.h>
#include <stdlib.h>

#include "dpdk.h"

static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void start(void)
{
    INPUT(prepare)();
    dpdk_start();
}

static inline void read_begin(void)
{
}

static inline void read_end(void)
{
}

/* Makes the table with the first route, so that the initial memory counts. */
static void route_add(const input_route *route, uint32_t hop)
{
    pthread_mutex_lock(&writer);
    if (!table)
        make_table();
    if (!table)
        abort();
    table_add(route, hop);
    pthread_mutex_unlock(&writer);
}

static void route_remove(const input_route *route)
{
    pthread_mutex_lock(&writer);
    table_remove(route);
    pthread_mutex_unlock(&writer);
}

#include "routes_family.h"

#endif /* BENCH_STRUCTURES_RTE_ROUTES_H */
