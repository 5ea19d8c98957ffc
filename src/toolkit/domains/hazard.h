/* SPDX-License-Identifier: MIT */
/* Barriers of hazard pointers outside of any domain (see hazard.c). */
#ifndef GP_USER_HAZARD_H
#define GP_USER_HAZARD_H

void hazard_barrier(void);

#endif /* GP_USER_HAZARD_H */
