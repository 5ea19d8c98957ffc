/* SPDX-License-Identifier: MIT */
/* <prudence/routes.h>. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "routes_input.h"

static struct prudence_routes *table;

static void start(void)
{
    routes_prepare();
    table = prudence_routes_create("bench", NULL);
    if (!table)
        abort();
}

static inline void read_begin(void)
{
    prudence_read_lock();
}

static inline void read_end(void)
{
    prudence_read_unlock();
}

static inline uint32_t hop_of(uint32_t address)
{
    const uint32_t bytes = htonl(address);

    return (uint32_t)prudence_routes_lookup_ipv4(table, &bytes);
}

static struct prudence_prefix prefix_of(const struct bench_route *route)
{
    struct prudence_prefix prefix = {.length = route->length};
    const uint32_t bytes = htonl(route->address);

    memcpy(prefix.address, &bytes, sizeof bytes);
    return prefix;
}

static void route_add(const struct bench_route *route, uint32_t hop)
{
    const struct prudence_prefix prefix = prefix_of(route);

    if (prudence_routes_add(table, &prefix, hop))
        abort();
}

static void route_remove(const struct bench_route *route)
{
    const struct prudence_prefix prefix = prefix_of(route);

    if (prudence_routes_remove(table, &prefix, NULL))
        abort();
}

#define INPUT(name) bench_##name
#define ADDRESSES   ROUTES_ADDRESSES
#include "routes_family.h"

const struct subject subject_routes =
    ROUTES_SUBJECT("routes", "longest-prefix match: prudence_routes", start, nothing, nothing);
