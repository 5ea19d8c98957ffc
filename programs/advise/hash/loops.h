/* SPDX-License-Identifier: MIT */
/* The loops of all mechanisms, for their list. */
#ifndef ADVISE_HASH_LOOPS_H
#define ADVISE_HASH_LOOPS_H

#include "hash.h"

#define DECLARE(name)                                                                              \
    void name##_work(struct crew_member *self, uint64_t operations);                               \
    void name##_work_checked(struct crew_member *self, uint64_t operations);

DECLARE(ideal)
DECLARE(global)
DECLARE(globalrw)
DECLARE(bkt)
DECLARE(bktcl)
DECLARE(bktrw)
DECLARE(brlock)
DECLARE(rcu)
DECLARE(prudence)
DECLARE(hazard)

/* Single operations, for tests. */
void hazard_search_checked(struct crew_member *self, uint64_t key);
bool hazard_remove_checked(struct crew_member *self, uint64_t key);

void locked_prepare(void);
void rcu_prepare(void);
void prudence_prepare(void);
void prudence_check_whole(void);

#endif /* ADVISE_HASH_LOOPS_H */
