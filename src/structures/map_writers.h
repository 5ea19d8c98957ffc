/* SPDX-License-Identifier: MIT */
/*
 * Threads inside an update of an ordered map, and the number of its objects. Both are in one word for some CPUs each, so that
 * an update is counted by the step by which its thread leaves: a child has the update and its count, or neither.
 *
 * A thread is inside from before it takes the first lock of a node until it has released the last. In between it waits for
 * nobody but other threads inside, and neither allocates nor defers. Why fork and a thread that enters see each other: writers.h.
 */
#ifndef STRUCTURES_MAP_WRITERS_H
#define STRUCTURES_MAP_WRITERS_H

#include "structures/map.h"

/* The lowest bits are the threads: Linux has no more at a time. The rest wraps around, which the sum of all words does not notice. */
#define MAP_WRITERS_BITS 22u
#define MAP_WRITERS_MASK ((UINT64_C(1) << MAP_WRITERS_BITS) - 1)

/* From here on this thread is inside; while a fork is under way it waits first. Returns its word. */
struct map_writers *map_enter(struct prudence_map *map);

/* It is not any more, and has added so many objects. */
void map_leave(struct map_writers *writers, int64_t objects);

/* For fork: waits until no thread is inside, when none may enter; and, in the child, forgets threads that were just about to. */
void map_wait_for_writers(struct prudence_map *map);
void map_forget_writers(struct prudence_map *map);

#endif /* STRUCTURES_MAP_WRITERS_H */
