/* SPDX-License-Identifier: MIT */
/* DPDK's trie of 24, then 8 bits a level, beside a tree of routes (rte_rib6). It allows one
 * writer at a time, so updates take a mutex. Nothing waits for readers, which favours this
 * subject: a freed group of 256 may be reused under one. */
#include "dpdk.h"

#include <pthread.h>
#include <rte_fib6.h>

#include "routes6_input.h"
#include "subject.h"

/* In DPDK 22.11.11 an addition reserves up to 13 groups of 256, and a deletion frees none of
 * them: it looks for the prefixes that still need the groups, and finds the one that it deletes.
 * So whatever the table's size, additions are refused in the end (docs/adr/0087). */
static const char refusal[] = "rte_fib6_add: no groups left, since rte_fib6_delete keeps them";

static struct rte_fib6 *table;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void start(void)
{
    routes6_prepare();
    dpdk_start();
}

/* Made with the first route, so that the initial memory counts. */
static void make_table(void)
{
    struct rte_fib6_conf config = {
        .type = RTE_FIB6_TRIE,
        /* of the tree of routes, including inner nodes */
        .max_routes = 2 * (int)subject_size + 256,
        .trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = 2 * (uint32_t)subject_size + 256},
    };

    table = rte_fib6_create("bench", -1, &config);
    if (!table)
        abort();
}

static inline void read_begin(void)
{
}

static inline void read_end(void)
{
}

static inline uint32_t hop_of(struct bench6_address address)
{
    uint64_t hop = 0;

    rte_fib6_lookup_bulk(table, &address.bytes, &hop, 1);
    return (uint32_t)hop;
}

static void route_add(const struct bench6_route *route, uint32_t hop)
{
    pthread_mutex_lock(&writer);
    if (!table)
        make_table();
    if (rte_fib6_add(table, route->address, (uint8_t)route->length, hop))
        subject_refuses(refusal);
    pthread_mutex_unlock(&writer);
}

static void route_remove(const struct bench6_route *route)
{
    pthread_mutex_lock(&writer);
    if (rte_fib6_delete(table, route->address, (uint8_t)route->length))
        subject_refuses(refusal);
    pthread_mutex_unlock(&writer);
}

#define INPUT(name) bench6_##name
#define ADDRESSES   ROUTES6_ADDRESSES
#include "routes_family.h"

const struct subject subject_rte_fib6 =
    ROUTES_SUBJECT("rte_fib6", "longest-prefix match of IPv6: DPDK's trie with a tree of routes",
                   start, nothing, nothing);
