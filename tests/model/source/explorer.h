/* SPDX-License-Identifier: MIT */
/*
 * An explorer of the library's own C text: every schedule of a few threads, within a bound.
 *
 * The sources are compiled unchanged, with the compiler's instrumentation for ThreadSanitizer, but
 * not linked with its runtime: explorer.c and tsan.c replace it, and see every access. system.c
 * plays the system. docs/explanation/models.md has the limits of the exploration.
 *
 * Threads are coroutines of one process. An execution begins with setup(), alone; then the threads
 * that it made run, one operation at a time, in an order that the explorer chooses; when none can
 * go on, after() checks the result, alone. Memory is restored, and the next execution makes other
 * choices.
 *
 * Code compiled with the instrumentation (which includes the cases) is explored: plain accesses are
 * checked for races and for use after free, and threads are switched at atomic ones.
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
    unsigned bound;      /* deviations: preemptions, and stores seen late */
    unsigned deep;       /* the same, under PRUDENCE_MODELS=deep */
};

/* All cases; the linker makes the array. */
extern const struct explore_case *const __start_explored[], *const __stop_explored[];

/* CASE(name, setup, bound, deep) begins the definition of a case's setup, and CASE_THEN(name,
 * setup, after, bound, deep) that of one with a check after it. */
#define CASE(name, setup, bound, deep) CASE_OF(name, setup, NULL, bound, deep)
#define CASE_THEN(name, setup, after, bound, deep)                                                 \
    static void after(void);                                                                       \
    CASE_OF(name, setup, after, bound, deep)
#define CASE_OF(name, setup, after, bound, deep)                                                   \
    static void setup(void);                                                                       \
    static const struct explore_case setup##_case = {name, setup, after, bound, deep};             \
    static const struct explore_case *const setup##_explored                                       \
        __attribute__((section("explored"), used)) = &setup##_case;                                \
    static void setup(void)

/* --- for cases --- */
#define EXPLORE_THREADS_MAX 6

/* Starts a thread on a processor of its own, or on one that it shares with others; only one of
 * these runs at a time. */
void explore_thread(void (*body)(void *argument), void *argument);
void explore_thread_on(unsigned cpu, void (*body)(void *argument), void *argument);
unsigned explore_cpu(void);
unsigned explore_self(void); /* this thread's number; 0 runs setup and after */

/* Lets other threads that can run go first; to go earlier is a deviation. */
void explore_late(void);

/* Reports a violation with the schedule that led to it, and ends the process. */
void explore_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Notes that the case's subject has happened: a case that holds must have called this in some
 * execution. */
void explore_note(void);

/* Frees the memory: a later use, or one not ordered with this call, is a violation. */
void explore_free(void *memory, size_t bytes);

/* Returns zeroed memory, which lasts for the execution. */
void *explore_alloc(size_t bytes);
void *explore_alloc_aligned(size_t bytes, size_t alignment);

#define explore_assert(condition)                                                                  \
    ((condition) ? (void)0 : explore_fail("%s (%s:%d)", #condition, __FILE__, __LINE__))

/* Address range of explore_alloc's memory. */
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
/* Reads the word, and writes the value that `change` makes of it if `change` returns true;
 * otherwise the order is `failing`. Returns the old value. */
typedef bool explore_change(uint64_t *value, uint64_t operand, uint64_t expected);
uint64_t explore_update(volatile void *address, unsigned bytes, explore_change *change,
                        uint64_t operand, uint64_t expected, enum explore_order order,
                        enum explore_order failing, const void *pc);
void explore_fence(enum explore_order order, const void *pc);
/* Every thread makes a full fence now, and, with `restarts`, restarts its restartable section. */
void explore_remote_fence(bool restarts, const void *pc);

void explore_yield(uint64_t nanoseconds); /* lets others run first; then the time has passed */
bool explore_block(const volatile void *word, unsigned bytes, uint64_t value, bool timed);
void explore_wake(const volatile void *word);
uint64_t explore_clock(void);
void explore_daemon(void (*body)(void *argument), void *argument); /* need not end */

/* Restartable sections begin with a call that reports (and forgets) whether this thread was
 * interrupted, and end with a store that is made unless it was interrupted since. */
bool explore_interrupted(void);
bool explore_commit(volatile void *address, unsigned bytes, uint64_t value, const void *pc);

void system_start(void); /* called by system.c, once */

/* Excludes memory from the restoring, because it is large and constant. */
void explore_keep(void *memory, size_t bytes);

#endif /* MODEL_SOURCE_EXPLORER_H */
