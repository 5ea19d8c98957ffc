/* SPDX-License-Identifier: MIT */
/* The scan of memb and qsbr (see scan.c). */
#ifndef GP_USER_SCAN_H
#define GP_USER_SCAN_H

#include "gp/user/domain.h"

/* Returns the least of the goal and all readers' sequences, and stores the number of readers found
 * outside. The caller has made the goal's barrier. scan_and_complete() also completes the result,
 * and notes no stalls. */
uint64_t scan_readers(struct prudence_domain *domain, uint64_t goal, unsigned *outside);
void scan_and_complete(struct prudence_domain *domain, uint64_t goal);

#endif /* GP_USER_SCAN_H */
