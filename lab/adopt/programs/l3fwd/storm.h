/* SPDX-License-Identifier: MIT */
/*
 * The interface between the driver (storm.c) and l3fwd. The driver's patch, which both sides
 * have, calls storm_*; l3fwd_lpm.c has lpm_route*.
 */
#ifndef STORM_H
#define STORM_H

#include <rte_rcu_qsbr.h>
#include <stdint.h>

/* Returns the variable to which lcores report by their numbers. Made at the first call. */
struct rte_rcu_qsbr *storm_readers(void);

/* Before the lcores start: traffic and updates begin. When they end, so does l3fwd. */
void storm_start(void);

/* After the lcores have ended. Prints one line of JSON. Returns 0, or 1 if anything was wrong. */
int storm_end(void);

/* Return 0, or a negative error number. `ip` is in the host's order. */
int lpm_route_add(uint32_t ip, uint8_t depth, uint16_t port);
int lpm_route_delete(uint32_t ip, uint8_t depth);

/* Returns the port, or -1. */
int lpm_route_find(uint32_t ip);

/* Frees the table of IPv4. Returns the number of objects that remain. */
int lpm_routes_end(void);

#endif
