/* SPDX-License-Identifier: MIT */
/* The addresses that slots of hazard pointers name (see hazard_names.c). */
#ifndef GP_USER_HAZARD_NAMES_H
#define GP_USER_HAZARD_NAMES_H

#include "gp/user/hazard_slots.h"

#define HAZARD_NAMES 256 /* names that a look takes at a time */

/* Where a walk over all slots goes on. */
struct hazard_walk {
    struct hazard_chunk *chunk;
    unsigned record, slot;
};

/* Sorted, lowest first. */
struct hazard_names {
    unsigned count;
    uintptr_t at[HAZARD_NAMES];
};

/* A thread's wait until each slot has stopped naming what it named after a barrier. */
#define HAZARD_WATCHED 248

struct hazard_watch {
    struct hazard_walk walk; /* the slots to look at after these */
    unsigned count;
    bool is_new; /* the names below were seen by the last look for the first time */
    struct {
        const struct prudence_hazard *slot;
        const void *name;
    } seen[HAZARD_WATCHED];
};

void hazard_watch_begin(struct hazard_watch *watch);
bool hazard_watch_is_over(struct hazard_watch *watch);

void hazard_names_begin(struct hazard_walk *walk);
const struct prudence_hazard *hazard_names_next(struct hazard_walk *walk, const void **name);
bool hazard_names_take(struct hazard_names *names, struct hazard_walk *walk);
bool hazard_names_have(const struct hazard_names *names, const void *object, size_t size);
bool hazard_names_protect(const void *object, size_t size);
bool hazard_names_any(void);

#endif /* GP_USER_HAZARD_NAMES_H */
