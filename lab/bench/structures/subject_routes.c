/* SPDX-License-Identifier: MIT */
/* <prudence/routes.h>. */
#include <prudence/routes.h>

#include <arpa/inet.h>
#include <string.h>

#include "prudence_sections.h"
#include "routes_input.h"

static struct prudence_routes_prefix prefix_of(const input_route *route)
{
    struct prudence_routes_prefix prefix = {.length = route->length};
    const uint32_t bytes = htonl(route->address);

    memcpy(prefix.address, &bytes, sizeof bytes);
    return prefix;
}

#include "prudence_routes.h"

static void start(void)
{
    bench_prepare();
    make_table(NULL);
}

static inline uint32_t hop_of(uint32_t address)
{
    const uint32_t bytes = htonl(address);

    return (uint32_t)prudence_routes_lookup_ipv4(table, &bytes);
}

#define ROUTES_AT_ONCE 32
typedef uint32_t bench_address;

static inline bench_address address_from(uint32_t address)
{
    return htonl(address);
}

static inline void hops_of(const bench_address *addresses, uint64_t *hops)
{
    uintptr_t values[ROUTES_AT_ONCE];

    prudence_routes_lookup_many_ipv4(table, addresses, ROUTES_AT_ONCE, values);
    for (unsigned i = 0; i < ROUTES_AT_ONCE; i++)
        hops[i] = values[i];
}

#include "routes_family.h"

const struct subject subject_routes = {"routes", "longest-prefix match: prudence_routes",
                                       .start = start, .fill = fill, .run = run};
const struct subject subject_routes_many = {
    "routes-many", "longest-prefix match: prudence_routes, 32 addresses at once", .start = start,
    .fill = fill, .run = run_many};
