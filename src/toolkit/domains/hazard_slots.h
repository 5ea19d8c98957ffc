/* SPDX-License-Identifier: MIT */
/* Slots of hazard pointers, their records, and the mode of all (see hazard_slots.c). */
#ifndef TOOLKIT_DOMAINS_HAZARD_SLOTS_H
#define TOOLKIT_DOMAINS_HAZARD_SLOTS_H

#include <prudence/hazard.h>

#include "gp/user/domain.h"

#define HAZARDS_IN_CHUNK 127 /* records; the chunk is larger than OS_META_LOCK_FREE */

/* A record's link in the list of its thread, which only that thread uses. */
struct hazard_owner {
    struct prudence_hazards *record;
    struct hazard_owner *next;
    uint64_t claimed_at; /* boot time, ns; distinguishes threads of one id; atomic */
};

struct hazard_chunk {
    struct hazard_chunk *next; /* older chunk */
    uint64_t used;             /* leading records that were ever claimed; atomic, only grows */
    uint32_t taken;            /* records that are not free; atomic, a hint where to check */
    struct hazard_owner owners[HAZARDS_IN_CHUNK];
    struct prudence_hazards records[HAZARDS_IN_CHUNK];
};

extern struct hazard_chunk *hazard_chunks; /* newest first; pushed by compare-and-swap */

/* Visits each record that was ever claimed. One at or past `used` was never claimed, or just now: a
 * claim raises `used` before its fence. */
#define for_each_hazards(chunk, record)                                                            \
    for ((chunk) = load_acquire(&hazard_chunks); (chunk); (chunk) = (chunk)->next)                 \
        for ((record) = (chunk)->records;                                                          \
             (record) < (chunk)->records + load_acquire(&(chunk)->used); (record)++)

unsigned hazard_slots_records(bool *only_own);
bool hazard_slots_are_fenced(void);
void hazard_slots_barrier_failed(void);
void hazard_slots_tell_over(void);
void hazard_slots_reap(void);
bool hazard_slots_thread_names(void);
bool hazard_slots_thread_may_name(void);
bool hazard_slots_thread_names_any(bool movable, bool (*is)(const void *name, void *context),
                                   void *context);
bool hazard_slots_may_use(const struct prudence_hazard *slot);
int hazard_slots_thread(const struct prudence_hazard *slot);
void hazard_slots_thread_ends(bool last);
void hazard_slots_follow_options(void);
void hazard_slots_fork_child(bool whole);

#endif /* TOOLKIT_DOMAINS_HAZARD_SLOTS_H */
