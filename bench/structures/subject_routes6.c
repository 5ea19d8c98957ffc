/* SPDX-License-Identifier: MIT */
/* <prudence/routes.h>, IPv6. */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include <stdlib.h>
#include <string.h>

#include "routes6_input.h"

static struct prudence_routes *table;

static void start(void)
{
    static const struct prudence_routes_attr attr = {.size = sizeof attr,
                                                     .family = PRUDENCE_ROUTES_IPV6};

    routes6_prepare();
    table = prudence_routes_create("bench", &attr);
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

static inline uint32_t hop_of(struct bench6_address address)
{
    return (uint32_t)prudence_routes_lookup_ipv6(table, address.bytes);
}

static struct prudence_prefix prefix_of(const struct bench6_route *route)
{
    struct prudence_prefix prefix = {.length = route->length};

    memcpy(prefix.address, route->address, sizeof prefix.address);
    return prefix;
}

static void route_add(const struct bench6_route *route, uint32_t hop)
{
    const struct prudence_prefix prefix = prefix_of(route);

    if (prudence_routes_add(table, &prefix, hop))
        abort();
}

static void route_remove(const struct bench6_route *route)
{
    const struct prudence_prefix prefix = prefix_of(route);

    if (prudence_routes_remove(table, &prefix, NULL))
        abort();
}

#define INPUT(name) bench6_##name
#define ADDRESSES   ROUTES6_ADDRESSES
#include "routes_family.h"

const struct subject subject_routes6 = ROUTES_SUBJECT(
    "routes6", "longest-prefix match of IPv6: prudence_routes", start, nothing, nothing);
