/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Waits for grace periods, each bounded. */
#ifndef SLAB_RECLAIM_WAIT_H
#define SLAB_RECLAIM_WAIT_H

#include "gp/gp_wait.h"

extern uint64_t slab_wait_max; /* ns */
struct wait_counts {
    uint64_t waits, expiries, pressure_waits;
};
extern struct wait_counts wait_counts;
void wait_drive_all(void);
bool wait_is_allowed(void);
bool wait_is_worth_it(void);
enum gp_reader_state wait_reader_state(void);
bool wait_has_outlasted(uint64_t began);
bool wait_give_up(uint64_t began);
bool wait_patiently(struct prudence_domain *domain, gp_cookie cookie, uint64_t began);
bool wait_for_domains(uint64_t began);

#endif /* SLAB_RECLAIM_WAIT_H */
