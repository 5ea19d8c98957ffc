/* SPDX-License-Identifier: MIT */
/* Guarded sampling: one object in N alone between pages that may not be touched (see guard.c). */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include "fork_part.h"
#include "guard/check.h"
#include "guard/fault_handler.h"
#include "guard/page_jobs.h"

enum { GUARD_EXTENSION = 2 }; /* number of the extension; side data: the slot of a guarded slab */
extern const struct slab_extension guard_extension;

/* Makes the slots and watches for faults, if the option asks for guarding. */
void guard_start(void);

/* Reports `object` and aborts if a guarded object was there and has been freed. */
void guard_report_freed(const void *object, const char *what);

/* --- private to guard*.c --- */
#define GUARD_SLOTS 512 /* limit of objects guarded at a time */

/* A page of the pool. The pages before and after stay closed. */
struct guard_slot {
    struct page_job closing; /* job of a freed slot, before the slot rests */
    char *object;
    size_t size;
    struct slab *slab; /* while in use */
    uint64_t word;     /* when freed: last state and traces of the object */
    enum guard_state { GUARD_UNUSED, GUARD_IN_USE, GUARD_FREED } state;
    char cache_name[CACHE_NAME_SIZE];
};
/* Made only with the option, because a process that locks its memory would pay for these. The slots
 * are made when the option is set, the pool with the first guarded object. */
extern struct guard_slot *guard_slots;
extern char *guard_pool;

static inline char *guard_page(unsigned slot)
{
    return guard_pool + ((size_t)2 * slot + 1) * os_page_size;
}

static inline bool guard_has(const void *pointer)
{
    return guard_pool && (uintptr_t)pointer - (uintptr_t)guard_pool <
                             ((size_t)2 * GUARD_SLOTS + 1) * os_page_size;
}

uint64_t guard_slot_word(const struct guard_slot *slot);
void guard_report_object(const struct slab *slab, const void *pointer);
void guard_report_fault(const struct fault *fault);
void guard_report_damage(const struct guard_slot *slot, const char *byte) __attribute__((noreturn));

extern const struct fork_part guard_fork_part;

#endif /* GUARD_GUARD_H */
