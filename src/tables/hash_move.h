/* SPDX-License-Identifier: MIT */
/* Moving a group of buckets (see hash_move.c). */
#ifndef TABLES_HASH_MOVE_H
#define TABLES_HASH_MOVE_H

#include "tables/hash.h"

/*
 * Moves a group from one array to the other, unless already moved. `group` is the number of the
 * bucket in the smaller array. The caller holds no lock but, if `stepping`, that one.
 */
void hash_move(uintptr_t from, uintptr_t to, uint64_t group, bool stepping);

#endif /* TABLES_HASH_MOVE_H */
