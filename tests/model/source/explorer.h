/* SPDX-License-Identifier: MIT */
/*
 * An explorer of the library's own C text: every schedule of a few threads, within a bound.
 *
 * The sources are compiled as they are, with the compiler's instrumentation for ThreadSanitizer, but not
 * linked with its runtime: explorer.c and tsan.c stand in its place, and see every access. What the
 * system does is system.c's. docs/explanation/models.md says what is explored, and what is not.
 *
 * Threads are coroutines of one process. An execution begins with setup(), alone; then the threads that
 * it made run, one operation at a time, in an order that the explorer chooses; when none can go on,
 * after() looks at the result, alone. Memory is put back, and the next execution makes other choices.
 *
 * Code that is compiled with the instrumentation (the cases are) is explored; plain accesses are checked for races
 * and for use after free, atomic ones are where threads are switched.
 */
#ifndef MODEL_SOURCE_EXPLORER_H
#define MODEL_SOURCE_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct explore_case {
    const char *name;
    void (*setup)(void);
    void (*after)(void); /* may be NULL */
    unsigned bound;      /* deviations: preemptions, and stores not seen in time */
    unsigned deep;       /* the same, under PRUDENCE_MODELS=deep */
};

/* --- for cases --- */
#define EXPLORE_THREADS_MAX 6

/* Each on a processor of its own; or on one that it shares with others, which stop one another there. */
void explore_thread(void (*body)(void *argument), void *argument);
void explore_thread_on(unsigned cpu, void (*body)(void *argument), void *argument);
unsigned explore_cpu(void);
unsigned explore_self(void); /* this thread's number; 0 is who runs setup and after */

/* Other threads that can go on do so first; to be earlier is a deviation. */
void explore_late(void);

/* A violation: reports it with the schedule that led here, and ends the process. */
void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* What the case is about has happened: a case that holds must have called this in some execution. */
void explore_note(void);

/* The memory is freed: a use from now on, or one in no order with this, is a violation. */
void explore_free(void *memory, size_t bytes);

/* Memory of the execution: zeroed, and gone with it. */
void *explore_alloc(size_t bytes);
void *explore_alloc_aligned(size_t bytes, size_t alignment);

#define explore_assert(condition)                                                                  \
    ((condition) ? (void)0 : explore_fail("%s (%s:%d)", #condition, __FILE__, __LINE__))

/* Where explore_alloc's memory lies. */
#define EXPLORE_ARENA       UINT64_C(0x600000000000)
#define EXPLORE_ARENA_BYTES ((size_t)4 << 20)

/* --- for tsan.c and system.c --- */
enum explore_order {
    EXPLORE_RELAXED,
    EXPLORE_CONSUME,
    EXPLORE_ACQUIRE,
    EXPLORE_RELEASE,
    EXPLORE_ACQ_REL,
    EXPLORE_SEQ_CST,
};

void explore_plain(const volatile void *address, size_t bytes, bool write, const void *pc);
uint64_t explore_load(const volatile void *address, unsigned bytes, enum explore_order order,
                      const void *pc);
void explore_store(volatile void *address, unsigned bytes, uint64_t value, enum explore_order order,
                   const void *pc);
/* Read, and write what `change` makes of it; if it says so: if not, the order is `failing`. Returns what was there. */
typedef bool explore_change(uint64_t *value, uint64_t operand, uint64_t expected);
uint64_t explore_update(volatile void *address, unsigned bytes, explore_change *change,
                        uint64_t operand, uint64_t expected, enum explore_order order,
                        enum explore_order failing, const void *pc);
void explore_fence(enum explore_order order, const void *pc);
/* Every thread makes a full fence, now; and restarts its restartable section. */
void explore_remote_fence(bool restarts, const void *pc);

void explore_yield(uint64_t nanoseconds); /* others first; then the time has passed */
bool explore_block(const volatile void *word, unsigned bytes, uint64_t value, bool timed);
void explore_wake(const volatile void *word);
uint64_t explore_clock(void);
void explore_daemon(void (*body)(void *argument), void *argument); /* need not end */

/* Restartable sections: begun by asking (and forgetting) whether this thread was interrupted, ended by a
 * store that is made unless it was meanwhile. */
bool explore_interrupted(void);
bool explore_commit(volatile void *address, unsigned bytes, uint64_t value, const void *pc);

void system_start(void); /* by system.c, once */

/* Not put back for each execution: large, and always the same. */
void explore_keep(void *memory, size_t bytes);

/* *_cases.c: the last of each has no name. */
extern const struct explore_case litmus_cases[], gp_cases[], slab_cases[], structure_cases[],
    hash_cases[], map_cases[], map_values_cases[], hash_values_cases[], routes_cases[];

#endif /* MODEL_SOURCE_EXPLORER_H */
