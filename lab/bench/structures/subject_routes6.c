/* SPDX-License-Identifier: MIT */
/* <prudence/routes.h>, IPv6. */
#include <prudence/routes.h>

#include <string.h>

#include "prudence_sections.h"
#include "routes6_input.h"

static struct prudence_routes_prefix prefix_of(const input_route *route)
{
    struct prudence_routes_prefix prefix = {.length = route->length};

    memcpy(prefix.address, route->address, sizeof prefix.address);
    return prefix;
}

#include "prudence_routes.h"

static void start(void)
{
    static const struct prudence_routes_attr attr = {.size = sizeof attr,
                                                     .family = PRUDENCE_ROUTES_IPV6};

    bench6_prepare();
    make_table(&attr);
}

static inline uint32_t hop_of(struct bench6_address address)
{
    return (uint32_t)prudence_routes_lookup_ipv6(table, address.bytes);
}

#include "routes_family.h"

const struct subject subject_routes6 = {"routes6", "longest-prefix match of IPv6: prudence_routes",
                                        .start = start, .fill = fill, .run = run};
