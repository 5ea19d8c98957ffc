/* SPDX-License-Identifier: MIT */
/*
 * Per-CPU caches, protected by restartable sequences.
 *
 * Each CPU has a line: a stack of pointers (the object cache), a ring of pointers (the latent
 * cache) and an owner word. Fast paths are rseq sections: they find the line of the CPU they run
 * on, see that it is not closed, read, and commit with one store; the kernel restarts a section that
 * was preempted, migrated or interrupted by a signal before its commit.
 *
 * Ownership (the slow paths). Only the thread that owns a line may change it in any way:
 *  - An owned line is *closed* (x86-64): pop finds no object (pop_from), push no room (stack_limit), append the ring's
 *    stop reached. Fast paths compare these anyway, so they need not look at the owner (docs/adr/0051). On aarch64
 *    (OS_PERCPU_CLOSES 0) they test owner == 0 instead, and nothing is closed.
 *  - Local take: an rseq section that tests owner == 0, closes and commits the taker's token. It is the
 *    only section on its CPU, so no fast path of this CPU is half done; later ones find the line closed.
 *  - Remote take: compare-and-swap 0 -> token, close, then membarrier RSEQ on that CPU, then recheck. The
 *    membarrier restarts a section that had found the line open, and is a full fence there:
 *    all that was pushed on that CPU is visible. The recheck finds a local take that committed
 *    over the token between the two. Tokens are unique among attempts in flight (an address on
 *    the taker's stack), or one taker could mistake another's token for its own.
 *  - Release: opens, then stores 0, all with release order. Fast paths load the word that may be closed before all
 *    that depends on it, in order, so they see all that the owner did, on whatever CPU it ran by then.
 *  - Closing does no harm at any time: fast paths then go the slow way, where a take and its release open
 *    the line again. So a take that was interrupted, or lost, leaves it closed. Only an owner opens.
 *  - Where the membarrier cannot be had, lines of other CPUs are out of reach, and their objects stay there until a thread
 *    runs there. If the caller is the only thread of the process no sequence is under way, and none is needed (ADR 123).
 * No thread waits for a line: one that finds it owned goes to the node instead. Under ownership there is no
 * system call, no lock and no wait, so an owner that loses its CPU delays nobody. (Fork and the
 * destruction of a cache do wait, briefly, for an owner to finish.) Modelled in
 * tests/model/test_busy_flag.py and test_closed_limits.py.
 *
 * The stack's word packs the operation count of pops above the number of objects, because an rseq
 * section commits one word and statistics are to be exact: pops << 16 | count.
 *
 * A section that is interrupted gives up, as if the line were closed. In the slow path a thread tries a few local takes and
 * then a remote one, which needs no section: so threads get on whose sections never end, because a debugger steps, that
 * are not registered (any more), or that run on a CPU which has no line (docs/adr/0124).
 *
 * Where rseq or membarrier RSEQ is missing, and under ThreadSanitizer, which sees neither, every
 * operation takes the line by compare-and-swap (os_percpu_rseq is false and fast paths are not
 * used). Modes are chosen once, at start.
 */
#ifndef OS_POSIX_PERCPU_H
#define OS_POSIX_PERCPU_H

#include "base/atomic.h"
#include "base/base.h"

#define OS_PERCPU_SHIFT  8
#define OS_PERCPU_STRIDE ((size_t)1 << OS_PERCPU_SHIFT) /* bytes from one CPU's line to the next */

#define STACK_COUNT_BITS 16
#define STACK_COUNT_MASK ((UINT64_C(1) << STACK_COUNT_BITS) - 1)
#define STACK_POP        ((UINT64_C(1) << STACK_COUNT_BITS) - 1) /* one pop more, one object less */

/* The offsets are known to the assembly (os_percpu_x86_64.h, os_percpu_aarch64.h). Owners do not touch the three words
 * that are closed: they say what a release is to open (os_percpu_limit_stack, os_percpu_stop_ring). */
struct os_percpu_line {
    uintptr_t owner;      /*  0: 0, or the owner's token */
    uint64_t stack_word;  /*  8: pops << 16 | objects on the stack */
    void **pop_from;      /* 16: `stack`; closed, or without one: os_percpu_nothing */
    uint64_t stack_limit; /* 24: objects that may be on the stack; closed: 0 */
    uint64_t ring_tail;   /* 32: objects ever appended */
    uint64_t ring_stop;   /* 40: the tail from which on appending needs the slow path; closed: 0 */
    uintptr_t ring_turn;  /* 48: slot 0, less the tail at which this turn of the ring began; see
                                 os_percpu_append */
    void **stack;         /* 56: the slot below it is there, and NULL */
    uint64_t ring_head;   /* 64: objects ever removed */
    void **ring;          /* 72 */
    uint32_t ring_mask;   /* 80: slots of the ring - 1 */
    uint32_t cpu;         /* whose line this is; constant */
    uint32_t limit;       /* stack_limit where it is open */
    uint32_t stop; /* the lower half of ring_stop where it is open: less than 2^32 above the tail */
};

static inline unsigned stack_count(const struct os_percpu_line *line)
{
    return (unsigned)(load_relaxed(&line->stack_word) & STACK_COUNT_MASK);
}

static inline uint64_t stack_pops(const struct os_percpu_line *line)
{
    return load_relaxed(&line->stack_word) >> STACK_COUNT_BITS;
}

/* Whether fast paths may be used; constant after start. */
extern HIDDEN bool os_percpu_rseq;

/* Why not; NULL: they may. Up to 47 characters. */
extern HIDDEN const char *os_percpu_why_not;

/* Lines that are owned and closed for good. Caches that may not use fast paths have these, which saves the others
 * a test: they find the line closed and go the slow way. */
extern HIDDEN void *os_percpu_owned_lines;

/* As many NULLs as objects may lie on a stack, and one below. Never written. */
#define OS_PERCPU_STACK_MAX 16384
extern HIDDEN void *os_percpu_nothing[OS_PERCPU_STACK_MAX + 1];

/* Where this thread's struct rseq lies, from the thread pointer; a dummy on CPU 0 without rseq. */
extern HIDDEN ptrdiff_t os_percpu_rseq_offset;

/* And os_percpu_cpus: CPUs that have lines, all numbers below this one. What sequences compare with; constant after start. */
#if defined(__x86_64__) && defined(__LP64__)
#include "os_percpu_x86_64.h"
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#include "os_percpu_aarch64.h"
#else
#include "os_percpu_generic.h"
#endif

/* os_percpu_append(), and if that was possible *object = os_percpu_pop(). */
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
 * address of a variable on the caller's stack. NULL when it is owned by another. The caller may be
 * moved to another CPU meanwhile and keeps the line that it took. A thread on a CPU that has no line takes the
 * first CPU's. A system call where no section of the caller ends, else none.
 */
struct os_percpu_line *os_percpu_take(void *lines, const void *token);

/* Takes the line of any CPU. False when it is owned, or out of reach. Costs a system call with rseq, if there are other threads. */
bool os_percpu_take_remote(struct os_percpu_line *line, const void *token);

/* Whether lines of other CPUs can be taken at all. False where sequences of other threads cannot be restarted, because calls
 * are few (few_calls.h) or the system refuses them. Cheap. */
bool os_percpu_reaches_others(void);

/*
 * The remote take in its three steps, so that many lines share one system call: claim each, fence all CPUs, then confirm each.
 * Claim and confirm are false when the line is another's. What was claimed is given back by os_percpu_unclaim, whether it was
 * fenced and confirmed or not: if the line is another's by now, nothing happens, else it is closed until its next release.
 *
 * The fence is false where the other CPUs are out of reach. Then the lines may not be changed. Of each claimed line one
 * sequence at most may still be under way, which has found it open before: a push, an append or a pop that ends later, or a
 * take. So a reader finds such a line as it was before or after that, and confirm may be true although a take follows.
 */
bool os_percpu_claim(struct os_percpu_line *line, const void *token);
bool os_percpu_fence_all(void);
bool os_percpu_confirm(const struct os_percpu_line *line, const void *token);
void os_percpu_unclaim(struct os_percpu_line *line, const void *token);

/* Of a new line, all 0: closed. */
static inline void os_percpu_line_init(struct os_percpu_line *line, unsigned cpu)
{
    line->pop_from = os_percpu_nothing + 1;
    line->cpu = cpu;
}

/* Objects that may be on the stack, from the owner's release on. */
static inline void os_percpu_limit_stack(struct os_percpu_line *line, unsigned limit)
{
    line->limit = limit;
}

/* The same of the tail at which appending needs the slow path: the tail now, or above it by no more than the ring has slots. */
static inline void os_percpu_stop_ring(struct os_percpu_line *line, uint64_t stop)
{
    line->stop = (uint32_t)stop;
}

/* Release: a section that loads one of these words open loads what the owner wrote, whatever CPU that runs on by now. */
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
    /* Release: pairs with the acquire of the owner test in takes. And after the opening: that is the owner's. */
    store_release(&line->owner, (uintptr_t)0);
}

/* As os_percpu_take_remote, for as long as `visit` runs. */
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

#endif /* OS_POSIX_PERCPU_H */
