/* SPDX-License-Identifier: MIT */
/* Fork and one hash table (see hash_fork.c). */
#ifndef TABLES_HASH_FORK_H
#define TABLES_HASH_FORK_H

#include "tables/hash.h"

/*
 * hash_fork_wait_for_writers waits until no thread is inside an update, while none may begin one.
 * In the child, hash_fork_forget_writers removes the locks of threads that were about to begin.
 */
void hash_fork_wait_for_writers(struct hash_table *table);
void hash_fork_forget_writers(struct hash_table *table);

#endif /* TABLES_HASH_FORK_H */
