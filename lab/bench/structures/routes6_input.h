/* SPDX-License-Identifier: MIT */
/*
 * IPv6 routes and addresses, the same for all subjects. The lengths of prefixes are distributed as
 * public reports on tables of the Internet say (44 % are /48, 12 % /32, 9 % /44, 8 % /40, 4 % /36).
 * They are clustered in the same way: blocks of /29 to /32 lie in few /12 and /16 of 2000::/3;
 * longer prefixes lie inside a block, some blocks have very many of them, and most of those are
 * numbered from 0 on. In no order.
 */
#ifndef BENCH_STRUCTURES_ROUTES6_INPUT_H
#define BENCH_STRUCTURES_ROUTES6_INPUT_H

#include <stdint.h>

struct bench6_route {
    unsigned char address[16]; /* as in a packet */
    uint32_t length;
};

struct bench6_address {
    unsigned char bytes[16];
};

#define INPUT_ADDRESSES (UINT64_C(1) << 18)

extern struct bench6_route *bench6_routes;    /* all different */
extern struct bench6_address *bench6_drawn;   /* INPUT_ADDRESSES, each in one of the prefixes */
extern struct bench6_address *bench6_uniform; /* INPUT_ADDRESSES in 2000::/3 */

/* Makes them, with `subject_size` routes. */
void bench6_prepare(void);

/* For templates that have one of the two inputs. */
typedef struct bench6_route input_route;
#define INPUT(name) bench6_##name

#endif /* BENCH_STRUCTURES_ROUTES6_INPUT_H */
