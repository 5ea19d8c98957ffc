/* SPDX-License-Identifier: MIT */
/*
 * A group: objects that are allocated together and die together, of one size class and liveness. It
 * is a list, whose objects are visited in the order of their allocation, or a tree, laid out by
 * levels (the children of object i are 2i + 1 and 2i + 2), which is read parents first and freed
 * children first. The links are not in the objects: an object may be of any size, several threads
 * may hold it, and a baseline without an allocator can run the same paths.
 *
 * A shared group has a reference for each thread that received it; the last one frees the objects.
 * A holding is one thread's reference.
 */
#ifndef ACDC_GROUP_H
#define ACDC_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"

struct object {
    void *memory;
    size_t size; /* requested size */
};

struct group {
    size_t count;
    uint64_t bytes; /* sum of the sizes */
    uint64_t seed;  /* for its receivers' draws */
    unsigned references;
    unsigned receivers; /* total number */
    unsigned size_class;
    bool tree, shared;
    struct object object[];
};

struct holding {
    struct holding *next;
    struct group *group;
    uint64_t dead_from; /* first time at which it is no longer accessed */
    unsigned position;  /* index among the receivers */
    bool refreshed;     /* short-term: it has a date */
};

static inline size_t group_size(size_t count)
{
    return sizeof(struct group) + count * sizeof(struct object);
}

/* Makes an empty group with room for `count` objects; returns NULL if there is no memory. */
struct group *group_create(struct arena *arena, size_t count);
void group_destroy(struct arena *arena, struct group *group, size_t room);

/* Return the object that a visit reaches after `at`; `count` gives the first one. Return `count`
 * at the end. */
size_t group_next_to_read(const struct group *group, size_t at);
size_t group_next_to_free(const struct group *group, size_t at);

#endif /* ACDC_GROUP_H */
