/* SPDX-License-Identifier: MIT */
/*
 * Versions of a file's block, which readers of liburcu's qsbr flavour may still see when a writer
 * retires them. per_cpu_pools.c is how servers do this by hand; cache.c is a cache of Prudence.
 * writes.c drives either.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>

#define OBJECT 240 /* bytes */

/* Returns 0, or an error number. */
int pool_start(void);

/* Returns an object that no reader sees, with undefined contents; NULL if there is no memory. */
void *pool_allocate(void);

/* Takes back an object that new readers cannot find. Any thread may call it, also one online. */
void pool_retire(void *object);

/* Waits until all that was retired can be allocated again. The caller is not online. */
void pool_settle(void);

/* Frees the retired objects, when no thread uses the pool. Returns how many objects remain. */
size_t pool_stop(void);

#endif
