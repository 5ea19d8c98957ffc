/* SPDX-License-Identifier: MIT */
/* DPDK's trie of 24, then 8 bits a level, beside a hash table of rules. It allows one writer
 * at a time, so updates take a mutex. Nothing waits for readers, which favours this subject: a
 * freed group of 256 may be reused under one. */
#include "dpdk.h"

#include <pthread.h>
#include <rte_lpm6.h>

#include "routes6_input.h"
#include "subject.h"

static struct rte_lpm6 *table;
static pthread_mutex_t writer = PTHREAD_MUTEX_INITIALIZER;

static void start(void)
{
    routes6_prepare();
    dpdk_start();
}

/* Made with the first route, so that the initial memory counts. */
static void make_table(void)
{
    const struct rte_lpm6_config config = {.max_rules = (uint32_t)subject_size + 256,
                                           .number_tbl8s = 2 * (uint32_t)subject_size + 256};

    table = rte_lpm6_create("bench", -1, &config);
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
    uint32_t hop = 0;

    rte_lpm6_lookup(table, address.bytes, &hop);
    return hop;
}

static void route_add(const struct bench6_route *route, uint32_t hop)
{
    pthread_mutex_lock(&writer);
    if (!table)
        make_table();
    if (rte_lpm6_add(table, route->address, (uint8_t)route->length, hop))
        abort();
    pthread_mutex_unlock(&writer);
}

static void route_remove(const struct bench6_route *route)
{
    pthread_mutex_lock(&writer);
    if (rte_lpm6_delete(table, route->address, (uint8_t)route->length))
        abort();
    pthread_mutex_unlock(&writer);
}

#define INPUT(name) bench6_##name
#define ADDRESSES   ROUTES6_ADDRESSES
#include "routes_family.h"

const struct subject subject_rte_lpm6 =
    ROUTES_SUBJECT("rte_lpm6", "longest-prefix match of IPv6: DPDK's trie with a table of rules",
                   start, nothing, nothing);
