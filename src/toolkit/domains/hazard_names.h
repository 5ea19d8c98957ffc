/* SPDX-License-Identifier: MIT */
/* The addresses that slots of hazard pointers name (see hazard_names.c). */
#ifndef TOOLKIT_DOMAINS_HAZARD_NAMES_H
#define TOOLKIT_DOMAINS_HAZARD_NAMES_H

#include "toolkit/domains/hazard_slots.h"

#define HAZARD_NAMES 256 /* names that a check takes at a time */

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
    struct hazard_walk walk; /* the slots to read after these */
    unsigned count;
    bool is_new; /* the names below were seen by the last search for the first time */
    bool reported;
    uint64_t began; /* ns; when they were */
    struct {
        const struct prudence_hazard *slot;
        const void *name;
    } seen[HAZARD_WATCHED];
};

void hazard_names_watch(struct hazard_watch *watch);
bool hazard_names_watched(struct hazard_watch *watch);
bool hazard_names_stall(const struct hazard_watch *watch);
void hazard_names_report(struct prudence_domain *domain, struct hazard_watch *watch);

#define HAZARD_FILTER_BITS 16

/* Drops most names that are in none of some objects. A bit for each of the 2^shift bytes that an
 * object of at most that size is in, by hash. */
struct hazard_filter {
    unsigned shift;
    uint64_t bits[(1 << HAZARD_FILTER_BITS) / 64];
};

void hazard_names_begin(struct hazard_walk *walk);
const struct prudence_hazard *hazard_names_next(struct hazard_walk *walk, const void **name);
void hazard_names_filter(struct hazard_filter *filter, size_t most);
void hazard_names_filter_add(struct hazard_filter *filter, const void *object, size_t size);
bool hazard_names_take(struct hazard_names *names, struct hazard_walk *walk,
                       const struct hazard_filter *filter);
bool hazard_names_have(const struct hazard_names *names, const void *object, size_t size);
unsigned hazard_names_poll_objects(void **objects, unsigned count, size_t size);
bool hazard_names_protect(const void *object, size_t size);
bool hazard_names_any(void);

#endif /* TOOLKIT_DOMAINS_HAZARD_NAMES_H */
