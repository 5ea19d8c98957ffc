/* SPDX-License-Identifier: MIT */
/* Routes and addresses made from a fixed seed (routes_input.h). */
#include "routes_input.h"

#include "number_set.h"

struct bench_route *bench_routes;
uint32_t *bench_drawn, *bench_uniform;

/* Number of prefixes of each length, out of 10,000. */
static const unsigned short share[33] = {
    [8] = 1,    [10] = 1,    [11] = 1,    [12] = 3,    [13] = 6,   [14] = 12,
    [15] = 20,  [16] = 140,  [17] = 90,   [18] = 140,  [19] = 250, [20] = 460,
    [21] = 520, [22] = 1100, [23] = 1000, [24] = 6256,
};

static uint64_t random_state;
static struct number_set seen; /* address << 8 | length of the prefixes so far */

static bool is_new(const struct bench_route *route)
{
    return number_set_add(&seen, (uint64_t)route->address << 8 | route->length);
}

static uint32_t bits_behind(unsigned length)
{
    return (uint32_t)(next_random(&random_state) >> 32) &
           (uint32_t)(UINT64_C(0xffffffff) >> length);
}

/* Makes a route of this length: anywhere from 1.0.0.0 to 223.255.255.255, or inside one of the
 * first `outer`. */
static struct bench_route route_within(unsigned length, uint64_t outer)
{
    struct bench_route route = {.length = length};

    if (length > 20 && outer) {
        const struct bench_route *other = &bench_routes[below(next_random(&random_state), outer)];

        route.address = other->address | bits_behind(other->length);
    } else {
        route.address =
            (uint32_t)(1 + below(next_random(&random_state), 223)) << 24 | bits_behind(8);
    }
    route.address &= (uint32_t)(UINT64_C(0xffffffff) << (32 - length));
    return route;
}

/* Makes the shortest first. If one length has too few possible prefixes, longer ones are made
 * instead. */
static void make_routes(uint64_t size)
{
    uint64_t count = 0, outer = 0, wanted = 0;

    for (unsigned length = 8; length <= 24; length++) {
        wanted += share[length] * size / 10000;
        for (unsigned tries = 0; count < (length < 24 ? wanted : size);) {
            bench_routes[count] = route_within(length, outer);
            if (is_new(&bench_routes[count]))
                count++;
            else if (length < 24 && ++tries > 1000)
                break;
        }
        if (length == 20)
            outer = count;
    }
}

static void shuffle(uint64_t size)
{
    for (uint64_t i = size; i > 1; i--) {
        uint64_t other = below(next_random(&random_state), i);
        struct bench_route kept = bench_routes[i - 1];

        bench_routes[i - 1] = bench_routes[other];
        bench_routes[other] = kept;
    }
}

void bench_prepare(void)
{
    const uint64_t size = subject_size;

    random_state = 4711;
    seen = number_set_make(size);
    bench_routes = calloc(size, sizeof *bench_routes);
    bench_drawn = calloc(INPUT_ADDRESSES, sizeof *bench_drawn);
    bench_uniform = calloc(INPUT_ADDRESSES, sizeof *bench_uniform);
    if (!bench_routes || !bench_drawn || !bench_uniform)
        abort();
    make_routes(size);
    free(seen.slots);
    shuffle(size);
    for (uint64_t i = 0; i < INPUT_ADDRESSES; i++) {
        const struct bench_route *route = &bench_routes[below(next_random(&random_state), size)];

        bench_drawn[i] = route->address | bits_behind(route->length);
        bench_uniform[i] = bits_behind(0);
    }
}
