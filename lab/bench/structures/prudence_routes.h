/* SPDX-License-Identifier: MIT */
/*
 * Updates of a <prudence/routes.h> for routes_family.h: the file that includes this has defined
 * `input_route`, the type of a route of its input, and
 * struct prudence_routes_prefix prefix_of(const input_route *).
 */
#ifndef BENCH_STRUCTURES_PRUDENCE_ROUTES_H
#define BENCH_STRUCTURES_PRUDENCE_ROUTES_H

#include <prudence/prudence.h>
#include <prudence/routes.h>

#include <stdlib.h>

static struct prudence_routes *table;

static void make_table(const struct prudence_routes_attr *attr)
{
    table = prudence_routes_create("bench", attr);
    if (!table)
        abort();
}

static void route_add(const input_route *route, uint32_t hop)
{
    const struct prudence_routes_prefix prefix = prefix_of(route);

    if (prudence_routes_add(table, &prefix, hop, NULL))
        abort();
}

static void route_remove(const input_route *route)
{
    const struct prudence_routes_prefix prefix = prefix_of(route);

    if (prudence_routes_erase(table, &prefix, NULL))
        abort();
}

#endif /* BENCH_STRUCTURES_PRUDENCE_ROUTES_H */
