/* SPDX-License-Identifier: MIT */
/* Guarded sampling: one object in N alone between pages that may not be touched (see guard.c). */
#ifndef DEBUG_GUARD_H
#define DEBUG_GUARD_H

#include "debug/check.h"
#include "debug/page_jobs.h"

enum { GUARD_EXTENSION = 2 }; /* its number; its side data: a guarded slab's slot */
extern const struct slab_extension guard_extension;

/* Makes the pool and watches for faults, if the option asks for it. */
void guard_start(void);

/* Reports `object` and aborts if it is a guarded one that is gone. */
void guard_report_freed(const void *object, const char *what);

void guard_fork_prepare(void);
void guard_fork_child(bool whole);
void guard_fork_done(void);

/* --- private to guard*.c --- */
#define GUARD_SLOTS 512 /* at most so many objects are guarded at a time */

/* A page of the pool, with the page behind it that stays closed; so does the one before the first. */
struct guard_slot {
    struct page_job closing; /* freed, before it rests */
    char *object;
    size_t size;
    struct slab *slab; /* in use */
    uint64_t word;     /* freed: the object's last state and traces */
    enum guard_state { GUARD_UNUSED, GUARD_IN_USE, GUARD_FREED } state;
    char cache_name[CACHE_NAME_SIZE];
};
/* Made with the option: a process that locks its memory would pay for them without it, too. The slots come first. */
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

uint64_t guard_word(const struct guard_slot *slot);
void guard_explain(const struct slab *slab, const void *pointer);
void guard_look_at_fault(const struct os_fault *fault);
void guard_report_damage(const struct guard_slot *slot, const char *byte) __attribute__((noreturn));

#endif /* DEBUG_GUARD_H */
