/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU caches, protected by restartable sequences.
 *
 * Each CPU has a line: a stack of pointers (the object cache), a ring of pointers (the latent
 * cache) and an owner word. Fast paths are rseq sections. They find the line of the CPU they run
 * on, check that it is not closed, read, and commit with one store. The kernel restarts a section
 * that was preempted, migrated or interrupted by a signal before the commit.
 *
 * Ownership (the slow paths). Only the thread that owns a line may change it in any way:
 *  - An owned line is *closed* (x86-64): pop finds no object (pop_from), push no room
 *    (stack_limit), and append has reached the ring's stop. Fast paths compare these words anyway,
 *    so they need not read the owner (docs/adr/0001). On aarch64 (OS_PERCPU_CLOSES 0) fast paths
 *    test owner == 0 instead, and nothing is closed.
 *  - Local take: an rseq section tests owner == 0, closes the line and commits the taker's token.
 *    No other section runs on this CPU, so no fast path here is half done; later ones find the line
 *    closed.
 *  - Remote take: compare-and-swap 0 -> token, close, membarrier RSEQ on that CPU, recheck. The
 *    membarrier restarts any section that had found the line open, and is a full fence there, so
 *    everything that was pushed on that CPU is visible. The recheck finds a local take that
 *    committed over the token between the two. Tokens are unique among attempts in flight (an
 *    address on the taker's stack); otherwise a taker could mistake another's token.
 *  - Release: opens the line, then stores 0 to the owner, all with release order. Fast paths load
 *    the word that may be closed before everything that depends on it, in order, so they see all
 *    that the owner did, on whatever CPU.
 *  - Closing is harmless at any time, because fast paths then go the slow way, where a take and the
 *    release open the line again. So a take that was interrupted, or lost, may leave the line
 *    closed. Only an owner opens it.
 *  - Without the membarrier, lines of other CPUs are out of reach, and their objects stay there
 *    until a thread runs there. If the caller is the only thread of the process, no sequence is
 *    under way, and no membarrier is needed (ADR 123).
 * No thread waits for a line: one that finds it owned goes to the node instead. An owner makes no
 * system call, takes no lock and never waits, so an owner that loses its CPU delays no thread.
 * (Fork and the destruction of a cache do wait, briefly, for an owner to finish.) Modelled in
 * tests/model/test_busy_flag.py and test_closed_limits.py.
 *
 * The stack's word packs the count of pops above the number of objects (pops << 16 | count),
 * because an rseq section commits one word and statistics must be exact.
 *
 * An interrupted section gives up, as if the line were closed. In the slow path a thread tries a
 * few local takes and then a remote one, which needs no section. So threads make progress even if
 * their sections never end: because a debugger steps, because they are not (or no longer)
 * registered, or because their CPU has no line (docs/adr/0001).
 *
 * Where rseq or membarrier RSEQ is missing, and under ThreadSanitizer, which sees neither,
 * os_percpu_rseq is false and sequences are not used. Then a thread owns a line by a number that it
 * holds (bias.c), or by compare-and-swap of the owner, for each operation. The mode is chosen once,
 * at start.
 */
#ifndef OS_POSIX_PERCPU_H
#define OS_POSIX_PERCPU_H

#include "base/atomic.h"
#include "base/base.h"
#include "os/posix/os_percpu_bias.h"

#include <prudence/sequences.h>

#define OS_PERCPU_STRIDE ((size_t)PRUDENCE_LINE_STRIDE)

#define STACK_COUNT_BITS 16
#define STACK_COUNT_MASK ((UINT64_C(1) << STACK_COUNT_BITS) - 1)
#define STACK_POP        ((uint64_t)PRUDENCE_STACK_POP)

/* <prudence/sequences.h> has the words that fast paths use. The assembly knows the offsets of all
 * (os_percpu_x86_64.h, os_percpu_aarch64.h). Owners do not touch the three words that are closed.
 * They set the values that a release opens them with (os_percpu_limit_stack, os_percpu_stop_ring).
 */
struct os_percpu_line {
    PRUDENCE_LINE_WORDS
    uint64_t ring_head; /* 64: objects ever removed */
    void **ring;        /* 72 */
    uint32_t ring_mask; /* 80: slots of the ring - 1 */
    uint32_t cpu;       /* constant */
    uint32_t limit;     /* value of stack_limit when open */
    uint32_t stop;      /* lower half of ring_stop when open; less than 2^32 above the tail */
};

static inline unsigned stack_count(const struct os_percpu_line *line)
{
    return (unsigned)(load_relaxed(&line->stack_word) & STACK_COUNT_MASK);
}

static inline uint64_t stack_pops(const struct os_percpu_line *line)
{
    return load_relaxed(&line->stack_word) >> STACK_COUNT_BITS;
}

/* Set if fast paths may be used; constant after start. */
extern HIDDEN bool os_percpu_rseq;

/* Reason why fast paths may not be used, up to 47 characters; NULL if they may. */
extern HIDDEN const char *os_percpu_why_not;

/* Lines that are owned and closed forever. Caches that may not use fast paths have these, so
 * other caches need no test for that; fast paths find the line closed and go the slow way. */
extern HIDDEN void *os_percpu_owned_lines;

/* As many NULLs as a stack may have objects, and one below. Never written. */
#define OS_PERCPU_STACK_MAX 16384
extern HIDDEN void *os_percpu_nothing[OS_PERCPU_STACK_MAX + 1];

/* Offset of this thread's struct rseq from the thread pointer; of a dummy on CPU 0 without rseq. */
extern HIDDEN ptrdiff_t os_percpu_rseq_offset;

/* Each also declares os_percpu_cpus, the number of CPUs whose lines sequences may use: all numbers
 * below it. 0 without sequences, so those of the fast paths end at once. Constant after start. */
#if defined(__x86_64__) && defined(__LP64__)
#include "os_percpu_x86_64.h"
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#include "os_percpu_aarch64.h"
#else
#include "os_percpu_generic.h"
#endif

/* Does os_percpu_append(), and if that succeeds *object = os_percpu_pop(). */
#ifndef OS_PERCPU_HAS_APPEND_AND_POP
static inline bool os_percpu_append_and_pop(void *const *lines, void *old, void **object)
{
    if (!os_percpu_append(lines, old))
        return false;
    *object = os_percpu_pop(lines);
    return true;
}
#endif

/*
 * Takes the line of the CPU that the caller runs on; `lines` is the first CPU's. `token` is the
 * address of a variable on the caller's stack. Returns NULL if the line is owned by another thread.
 * If the caller moves to another CPU it keeps the line it took. A thread on a CPU without a line
 * takes the first CPU's. Makes a system call only if no section of the caller ends.
 */
struct os_percpu_line *os_percpu_take(void *lines, const void *token);

/* Do what the sequences do, as the owner of a line, where os_percpu_rseq is false. Return NULL or
 * false, with nothing done, if the slow path must serve the object. Async-signal-safe. */
void *os_percpu_locked_pop(void *lines);
bool os_percpu_locked_push(void *lines, void *object);
bool os_percpu_locked_append(void *lines, void *object);

/* Takes the line of any CPU. Returns false if it is owned or out of reach. Costs a system call
 * with rseq, if there are other threads. */
bool os_percpu_take_remote(struct os_percpu_line *line, const void *token);

/* Returns whether lines of other CPUs can be taken at all. They cannot if sequences of other
 * threads cannot be restarted, because calls are few (syscall_policy.h) or the system refuses.
 * Cheap. */
bool os_percpu_reaches_others(void);

/*
 * The remote take in three steps, so that many lines share one system call: claim each, fence all
 * CPUs, confirm each. Claim and confirm return false if the line is another thread's.
 * os_percpu_unclaim gives a claimed line back, fenced and confirmed or not. If another thread has
 * the line by then, nothing happens; otherwise the line stays closed until the next release.
 *
 * The fence returns false if the other CPUs are out of reach, and the lines may then not be
 * changed. On each claimed line at most one sequence that found it open may still be under way: a
 * push, append or pop that ends later, or a take. So a reader finds such a line as it was before or
 * after that sequence, and confirm may return true although a take follows.
 */
bool os_percpu_claim(struct os_percpu_line *line, const void *token);
bool os_percpu_fence_all(void);
bool os_percpu_confirm(const struct os_percpu_line *line, const void *token);
void os_percpu_unclaim(struct os_percpu_line *line, const void *token);

/* Initializes a new line, which is all 0, as closed. */
static inline void os_percpu_line_init(struct os_percpu_line *line, unsigned cpu)
{
    line->pop_from = os_percpu_nothing + 1;
    line->cpu = cpu;
}

/* Sets how many objects may be on the stack from the owner's release on. */
static inline void os_percpu_limit_stack(struct os_percpu_line *line, unsigned limit)
{
    line->limit = limit;
}

/* Sets the tail at which appending needs the slow path, from the owner's release on. `stop` is
 * at least the current tail, and exceeds it by no more than the ring has slots. */
static inline void os_percpu_stop_ring(struct os_percpu_line *line, uint64_t stop)
{
    line->stop = (uint32_t)stop;
}

/* Returns whether an append needs the slow path. Called by the owner. */
static inline bool os_percpu_is_at_stop(const struct os_percpu_line *line)
{
    return (uint32_t)load_relaxed(&line->ring_tail) == line->stop;
}

/* Release: a section that loads one of these words as open also sees what the owner wrote,
 * whatever CPU the section runs on. */
static inline void os_percpu_open(struct os_percpu_line *line)
{
    uint64_t tail = load_relaxed(&line->ring_tail);

    store_release(&line->pop_from, line->stack ? line->stack : os_percpu_nothing + 1);
    store_release(&line->stack_limit, (uint64_t)line->limit);
    store_release(&line->ring_stop, tail + (uint32_t)(line->stop - (uint32_t)tail));
}

static inline void os_percpu_release(struct os_percpu_line *line)
{
    if (likely(os_percpu_rseq))
        os_percpu_open(line);
    else if (os_percpu_is_inside(line)) {
        os_percpu_leave();
        return;
    }
    /* Release: pairs with the acquire of the owner test in takes. Comes after the opening, which
     * only an owner may do. */
    store_release(&line->owner, (uintptr_t)0);
}

/* Does os_percpu_take_remote, and keeps the line while `visit` runs. */
static inline bool os_percpu_visit_remote(struct os_percpu_line *line, const void *token,
                                          void (*visit)(struct os_percpu_line *line, void *data),
                                          void *data)
{
    if (!os_percpu_take_remote(line, token))
        return false;
    visit(line, data);
    os_percpu_release(line);
    return true;
}

/* ---------------------------------------------------- what sequences do, as the owner of a line */

static inline __attribute__((always_inline)) bool owner_pop(struct os_percpu_line *line,
                                                            void **object)
{
    uint64_t word = load_relaxed(&line->stack_word);
    unsigned count = (unsigned)(word & STACK_COUNT_MASK);

    if (unlikely(!count))
        return false;
    *object = line->stack[count - 1];
    line->stack[count - 1] = NULL; /* leak checkers search for pointers */
    store_relaxed(&line->stack_word, word + STACK_POP);
    return true;
}

static inline __attribute__((always_inline)) bool owner_push(struct os_percpu_line *line,
                                                             void **object)
{
    unsigned count = stack_count(line);

    if (unlikely(count >= line->limit) || unlikely(line->stack[(long)count - 1] == *object))
        return false;
    line->stack[count] = *object;
    store_relaxed(&line->stack_word, load_relaxed(&line->stack_word) + 1);
    return true;
}

static inline __attribute__((always_inline)) bool owner_append(struct os_percpu_line *line,
                                                               void **object)
{
    uint64_t tail = load_relaxed(&line->ring_tail);
    void **slot =
        (void **)(line->ring_turn + tail * sizeof(void *)); /* NOLINT(performance-no-int-to-ptr) */

    if (unlikely((uint32_t)tail == line->stop) || unlikely(slot[-1] == *object))
        return false;
    *slot = *object;
    store_relaxed(&line->ring_tail, tail + 1);
    return true;
}

/* Inlined, so that the holder of a number makes no call. `act` is a constant. */
static inline __attribute__((always_inline)) bool
os_percpu_biased_do(bool (*act)(struct os_percpu_line *line, void **object), void *lines,
                    void **object)
{
    struct os_percpu_bias *hold = os_percpu_bias;
    struct os_percpu_line *line = likely(lines != NULL) ? os_percpu_step_in_of(hold, lines) : NULL;
    bool done;

    if (unlikely(!line))
        return false;
    done = act(line, object);
    os_percpu_step_out_of(hold);
    return done;
}

/* Like os_percpu_locked_pop() and its like, if this thread holds a number and `lines` is not NULL;
 * else do nothing. Async-signal-safe. */
static inline __attribute__((always_inline)) void *os_percpu_biased_pop(void *lines)
{
    void *object = NULL;

    os_percpu_biased_do(owner_pop, lines, &object);
    return object;
}

static inline __attribute__((always_inline)) bool os_percpu_biased_push(void *lines, void *object)
{
    return os_percpu_biased_do(owner_push, lines, &object);
}

static inline __attribute__((always_inline)) bool os_percpu_biased_append(void *lines, void *object)
{
    return os_percpu_biased_do(owner_append, lines, &object);
}

/* Do what the sequences do, by a sequence if there are any. */
static inline void *os_percpu_serve_pop(void *const *lines)
{
    return likely(os_percpu_rseq) ? os_percpu_pop(lines) : os_percpu_locked_pop(*lines);
}

static inline bool os_percpu_serve_push(void *const *lines, void *object)
{
    return likely(os_percpu_rseq) ? os_percpu_push(lines, object)
                                  : os_percpu_locked_push(*lines, object);
}

static inline bool os_percpu_serve_append(void *const *lines, void *object)
{
    return likely(os_percpu_rseq) ? os_percpu_append(lines, object)
                                  : os_percpu_locked_append(*lines, object);
}

#endif /* OS_POSIX_PERCPU_H */
