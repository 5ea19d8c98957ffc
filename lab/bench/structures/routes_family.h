/* SPDX-License-Identifier: MIT */
/*
 * Longest-prefix match, as a template: the file that includes this has included one of the inputs
 * (routes_input.h, routes6_input.h), and has defined
 *     read_begin, read_end                    a section
 *     uint32_t hop_of(address)                in a section; 0: there is no route
 *     route_add(route, hop), route_remove     outside
 * Of 100 lookups, `hits` use addresses drawn from the prefixes, and the others any address. An
 * update removes one of the prefixes of its thread, or adds it again. With ROUTES_AT_ONCE (below),
 * there is also run_many.
 */
#ifndef BENCH_STRUCTURES_ROUTES_FAMILY_H
#define BENCH_STRUCTURES_ROUTES_FAMILY_H

#include <stdlib.h>

#include "subject.h"

static void fill(uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        route_add(&INPUT(routes)[i], 1 + (uint32_t)i % 256);
}

static inline void look_up(struct work *work, uint64_t random)
{
    const bool drawn = is_hit(work, random);
    const uint64_t at = work->lookups++ & (INPUT_ADDRESSES - 1);
    const uint64_t begun = timing_begin(&work->looked_up, TIMED_LOOKUPS);
    uint32_t hop;

    read_begin();
    hop = hop_of(drawn ? INPUT(drawn)[at] : INPUT(uniform)[at]);
    read_end();
    timing_end(&work->looked_up, begun);
    work->found += hop != 0;
    work->sum += hop;
}

static void update(struct work *work, uint64_t random)
{
    const uint64_t share = work->size / work->threads;
    const uint64_t i = work->thread * share + below(random, share);
    uint64_t begun;

    if (!work->gone)
        work->gone = calloc(work->size, 1);
    begun = timing_begin(&work->updated, TIMED_UPDATES);
    if (work->gone[i])
        route_add(&INPUT(routes)[i], 1 + (uint32_t)i % 256);
    else
        route_remove(&INPUT(routes)[i]);
    timing_end(&work->updated, begun);
    work->gone[i] = !work->gone[i];
}

static inline void operate(struct work *work, uint64_t random)
{
    if ((random >> 8) % 128 * 100 < (uint64_t)work->updates * 128)
        update(work, random);
    else
        look_up(work, random);
}

static void run(struct work *work)
{
    work->lookups = next_random(&work->random);
    run_operations(work, operate);
}

#ifdef ROUTES_AT_ONCE
/*
 * The same, with lookups of many addresses at once, as a router has that takes a burst of packets.
 * The file that includes this has also defined
 *     ROUTES_AT_ONCE                          number of addresses, a power of 2
 *     bench_address                           type of an address as the table takes it
 *     bench_address address_from(address)
 *     hops_of(const bench_address *addresses, uint64_t *hops)     in a section
 */
static void look_up_many(struct work *work, const bench_address *addresses)
{
    uint64_t hops[ROUTES_AT_ONCE];

    read_begin();
    hops_of(addresses, hops);
    read_end();
    for (unsigned i = 0; i < ROUTES_AT_ONCE; i++) {
        work->found += hops[i] != 0;
        work->sum += hops[i];
    }
}

static void run_many(struct work *work)
{
    bench_address addresses[ROUTES_AT_ONCE];

    work->lookups = next_random(&work->random);
    do {
        for (unsigned i = 0; i < 4 * SLICE; i++) {
            const uint64_t random = next_random(&work->random);

            if ((random >> 8) % 128 * 100 < (uint64_t)work->updates * 128) {
                update(work, random);
            } else {
                const uint64_t at = work->lookups++;
                const uint64_t place = at & (INPUT_ADDRESSES - 1);

                addresses[at % ROUTES_AT_ONCE] = address_from(
                    is_hit(work, random) ? INPUT(drawn)[place] : INPUT(uniform)[place]);
                if ((at + 1) % ROUTES_AT_ONCE == 0)
                    look_up_many(work, addresses);
            }
        }
        work->operations += 4 * SLICE;
    } while (!__atomic_load_n(work->stop, __ATOMIC_RELAXED));
}
#endif

#endif /* BENCH_STRUCTURES_ROUTES_FAMILY_H */
