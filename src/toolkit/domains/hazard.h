/* SPDX-License-Identifier: MIT */
/* Barriers of hazard pointers outside of any domain (see hazard.c). */
#ifndef TOOLKIT_DOMAINS_HAZARD_H
#define TOOLKIT_DOMAINS_HAZARD_H

void hazard_barrier(void);

#endif /* TOOLKIT_DOMAINS_HAZARD_H */
