/* SPDX-License-Identifier: MIT */
/*
 * IPv4 routes and addresses, the same for all subjects: prefixes whose lengths are distributed as
 * in tables of the Internet (60 % are /24, 11 % /22, 10 % /23, 0.02 % shorter than /12), those
 * longer than /20 inside shorter ones, in no order.
 */
#ifndef BENCH_STRUCTURES_ROUTES_INPUT_H
#define BENCH_STRUCTURES_ROUTES_INPUT_H

#include <stdint.h>

struct bench_route {
    uint32_t address; /* in the host's order */
    uint32_t length;
};

#define INPUT_ADDRESSES (UINT64_C(1) << 20)

extern struct bench_route *bench_routes; /* all different */
extern uint32_t *bench_drawn;            /* INPUT_ADDRESSES, each in one of the prefixes */
extern uint32_t *bench_uniform;          /* INPUT_ADDRESSES of any value */

/* Makes them, with `subject_size` routes. */
void bench_prepare(void);

/* For templates that have one of the two inputs. */
typedef struct bench_route input_route;
#define INPUT(name) bench_##name

#endif /* BENCH_STRUCTURES_ROUTES_INPUT_H */
