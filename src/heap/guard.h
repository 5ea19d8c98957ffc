/* SPDX-License-Identifier: MIT */
/* Guarded sampling: one object in N alone between pages that nobody may touch (see guard.c). */
#ifndef HEAP_GUARD_H
#define HEAP_GUARD_H

#include "heap/heap.h"

extern uint64_t guard_interval; /* the option guard: one allocation in so many; 0: none */

/* Makes the pool and watches for faults, if the option asks for it. */
void guard_start(void);

/* Whether this allocation of this thread is the one in N. */
bool guard_is_due(void);

/* A guarded, live object of `size` bytes; NULL: this one cannot be guarded, or no page is left. */
void *guard_alloc(struct prudence_cache *cache, size_t size);

/* What was asked for when the object of this guarded slab was allocated. */
size_t guard_size(const struct slab *slab);

/* After a guarded object of the cache was deferred: sees to it that a grace period comes. */
void guard_deferred(struct prudence_cache *cache);

/* slab_watch.going of a guarded slab: its page is closed, and rests. */
void guard_going(struct slab *slab);

/* If `pointer` lies in the pool, writes what is known about the object there. */
void guard_explain(const void *pointer);

/* Reports `object` and aborts if it is a guarded one that is gone. */
void guard_report_freed(const void *object, const char *what);

void guard_fork_prepare(void);
void guard_fork_done(void);

/* --- private to guard*.c --- */
#define GUARD_SLOTS 512 /* at most so many objects are guarded at a time */

/* A page of the pool, with the page behind it that stays closed; so does the one before the first. */
struct guard_slot {
    char *object;
    size_t size;
    struct slab *slab; /* in use */
    uint64_t word;     /* freed: the object's last state and traces */
    enum guard_state { GUARD_UNUSED, GUARD_IN_USE, GUARD_FREED } state;
    char cache_name[CACHE_NAME_SIZE];
};
extern struct guard_slot guard_slots[GUARD_SLOTS];
extern char *guard_pool;

static inline char *guard_page(unsigned slot)
{
    return guard_pool + ((size_t)2 * slot + 1) * OS_PAGE_SIZE;
}

static inline bool guard_has(const void *pointer)
{
    return guard_pool && (uintptr_t)pointer - (uintptr_t)guard_pool <
                             ((size_t)2 * GUARD_SLOTS + 1) * OS_PAGE_SIZE;
}

uint64_t guard_word(const struct guard_slot *slot);
void guard_look_at_fault(const struct os_fault *fault);
void guard_report_damage(const struct guard_slot *slot, const char *byte) __attribute__((noreturn));

#endif /* HEAP_GUARD_H */
