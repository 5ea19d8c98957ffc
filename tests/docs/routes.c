/* SPDX-License-Identifier: MIT */
/*
 * The longest prefix that matches an address, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <netinet/in.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

static int add_routes(struct prudence_routes *routes)
{
    const struct prudence_routes_prefix all = {.length = 0},
                                        net = {.address = {192, 0, 2}, .length = 24};
    int error = prudence_routes_add(routes, &all, 1, NULL); /* 0.0.0.0/0 by next hop 1 */

    return error ? error : prudence_routes_add(routes, &net, 2, NULL);
}

static unsigned next_hop(const struct prudence_routes *routes, const struct in_addr *address)
{
    unsigned hop;

    prudence_read_lock();
    hop = (unsigned)prudence_routes_lookup_ipv4(routes, address); /* 0: no route */
    prudence_read_unlock();
    return hop;
}

static unsigned long hops;

static void print_route(const unsigned char *address, unsigned length, uintptr_t hop)
{
    hops += address[0] + length + hop;
}

static void print_below(struct prudence_routes *routes)
{
    const struct prudence_routes_prefix net = {.address = {192, 0, 2}, .length = 24};
    struct prudence_routes_walk walk;
    uintptr_t hop;

    prudence_read_lock();
    prudence_routes_for_each(&walk, routes, &net, hop)
        print_route(walk.prefix.address, walk.prefix.length, hop);
    prudence_read_unlock();
}

int main(void)
{
    struct prudence_routes *routes = prudence_routes_create("routes", NULL);
    const struct in_addr inside = {.s_addr = htonl(0xc0000207)}, outside = {.s_addr = htonl(1)};

    if (add_routes(routes) || next_hop(routes, &inside) != 2 || next_hop(routes, &outside) != 1)
        return 1;
    print_below(routes);
    return hops != 192 + 24 + 2;
}
