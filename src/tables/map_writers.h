/* SPDX-License-Identifier: MIT */
/*
 * Counts the threads inside an update of an ordered map, and the map's objects. Each group of CPUs
 * has one word for both numbers, so the atomic addition by which a thread leaves also counts the
 * update. A forked child has both the update and the count, or neither.
 *
 * A thread is inside from before it takes the first lock of a node until it has released the last.
 * In between, the thread waits only for other threads inside, and neither allocates nor defers.
 * writers.h says why fork and an entering thread see each other.
 */
#ifndef TABLES_MAP_WRITERS_H
#define TABLES_MAP_WRITERS_H

#include "tables/map.h"

/* The lowest bits count threads; Linux has no more at a time. The other bits count objects and wrap
 * around, which cancels out in the sum of all words. */
#define MAP_WRITERS_BITS 22u
#define MAP_WRITERS_MASK ((UINT64_C(1) << MAP_WRITERS_BITS) - 1)

/* Counts this thread as inside, after waiting for any fork under way. Returns the thread's word. */
struct map_writers *map_writers_enter(struct prudence_map *map);

/* Counts the thread as outside, and adds `objects` to the number of objects. */
void map_writers_leave(struct map_writers *writers, int64_t objects);

/* For fork: map_writers_wait waits until no thread is inside, while none may enter. In the
 * child, map_writers_forget forgets threads that were about to enter. */
void map_writers_wait(struct prudence_map *map);
void map_writers_forget(struct prudence_map *map);

#endif /* TABLES_MAP_WRITERS_H */
