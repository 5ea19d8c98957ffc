/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Per-CPU caches, protected by switching interrupts off on their own CPU (docs/adr/0018).
 *
 * The same lines and the same protocol as in a process, where the restartable sequence is replaced by
 * a few instructions with interrupts off: nothing on this CPU comes in between but an NMI, and there
 * nobody may call (prudence_*() refuse).
 *  - Fast paths and the local take test owner == 0, and commit, with interrupts off.
 *  - Remote take: a local take in an interrupt on that CPU, so that the line is not owned while the
 *    interrupt is on its way. Only from a task with interrupts on; else it fails, as if the line was
 *    owned. A CPU that is dead does not run fast paths: its line is taken by compare-and-swap.
 *  - All CPUs' lines (destruction of a cache): claim by compare-and-swap, one round of interrupts, then
 *    recheck, as in a process: when the interrupts have run, no fast path is half done that tested
 *    owner == 0 before; the recheck finds a local take that wrote over the token between the two.
 *  - Release: store of 0 with release order.
 * The taker of a line keeps interrupts off until the release, so that no interrupt finds its own CPU's
 * owned, or keeps another's for long. What is done meanwhile is short: at most a batch is copied, and at
 * times the arrays grow. So a line is found owned only while another CPU empties it; then one goes to
 * the node.
 */
#ifndef OS_KERNEL_PERCPU_H
#define OS_KERNEL_PERCPU_H

#include "base/atomic.h"
#include "base/base.h"

#define OS_PERCPU_SHIFT  8
#define OS_PERCPU_STRIDE ((size_t)1 << OS_PERCPU_SHIFT)

#define STACK_COUNT_BITS 20
#define STACK_COUNT_MASK ((UINT64_C(1) << STACK_COUNT_BITS) - 1)
#define STACK_POP        ((UINT64_C(1) << STACK_COUNT_BITS) - 1) /* one pop more, one object less */

struct os_percpu_line {
    uintptr_t owner;     /* 0, or the owner's token */
    uint64_t stack_word; /* pops << 20 | objects on the stack */
    void **stack;
    uint64_t stack_limit; /* objects that may be on the stack */
    uint64_t ring_tail;   /* objects ever appended */
    uint64_t ring_stop;   /* the tail at which appending needs the slow path */
    uintptr_t ring_turn;  /* slot 0, less the tail at which this turn of the ring began */
    uint64_t ring_mask;   /* slots of the ring - 1 */
    uint64_t ring_head;   /* objects ever removed */
    void **ring;
    unsigned cpu; /* whose line this is; constant */
    bool irq_off; /* its owner has interrupts off, and had `irq_flags` */
    unsigned long irq_flags;
};

static inline unsigned stack_count(const struct os_percpu_line *line)
{
    return (unsigned)(load_relaxed(&line->stack_word) & STACK_COUNT_MASK);
}

static inline uint64_t stack_pops(const struct os_percpu_line *line)
{
    return load_relaxed(&line->stack_word) >> STACK_COUNT_BITS;
}

/* Fast paths may always be used, except on lines that are owned permanently. */
#define os_percpu_rseq true
extern void *os_percpu_owned_lines;

/* Of a CPU's line, from the first CPU's; constant. */
DECLARE_PER_CPU(unsigned long, os_percpu_offset);

/* With interrupts off, as the next three. */
static __always_inline struct os_percpu_line *os_percpu_here(void *const *lines)
{
    return (struct os_percpu_line *)((char *)*lines + __this_cpu_read(os_percpu_offset));
}

/* Fast paths look at the owner first (acquire): what they read before could be older than what it did. */

/* The top of the stack; NULL: empty, or owned. */
static __always_inline void *os_percpu_pop_here(void *const *lines)
{
    struct os_percpu_line *line = os_percpu_here(lines);
    uint64_t word;
    void *object;

    if (unlikely(load_acquire(&line->owner)))
        return NULL;
    word = line->stack_word;
    if (unlikely(!(word & STACK_COUNT_MASK)))
        return NULL;
    object = line->stack[(word & STACK_COUNT_MASK) - 1];
    store_relaxed(&line->stack_word, word + STACK_POP);
    return object;
}

/* False: full, or owned. */
static __always_inline bool os_percpu_push_here(void *const *lines, void *object)
{
    struct os_percpu_line *line = os_percpu_here(lines);
    uint64_t word;

    if (unlikely(load_acquire(&line->owner)))
        return false;
    word = line->stack_word;
    if (unlikely((word & STACK_COUNT_MASK) >= line->stack_limit))
        return false;
    if (unlikely(line->stack[(long)(word & STACK_COUNT_MASK) - 1] == object)) /* freed twice */
        return false;
    line->stack[word & STACK_COUNT_MASK] = object;
    store_relaxed(&line->stack_word, word + 1);
    return true;
}

/* Appends to the ring. False: at its stop, owned, or the slot before holds the same object (below slot 0 lies the stack). */
static __always_inline bool os_percpu_append_here(void *const *lines, void *object)
{
    struct os_percpu_line *line = os_percpu_here(lines);
    uint64_t tail;

    if (unlikely(load_acquire(&line->owner)))
        return false;
    tail = line->ring_tail;
    if (unlikely(tail == line->ring_stop))
        return false;
    if (unlikely(((void **)line->ring_turn)[tail - 1] ==
                 object)) /* deferred twice, or not used any more */
        return false;
    ((void **)line->ring_turn)[tail] = object;
    store_relaxed(&line->ring_tail, tail + 1);
    return true;
}

/* The same three with interrupts as they are, for the gate (slab/gate.c). */
static inline void *os_percpu_pop(void *const *lines)
{
    unsigned long flags;
    void *object;

    local_irq_save(flags);
    object = os_percpu_pop_here(lines);
    local_irq_restore(flags);
    return object;
}

static inline bool os_percpu_push(void *const *lines, void *object)
{
    unsigned long flags;
    bool pushed;

    local_irq_save(flags);
    pushed = os_percpu_push_here(lines, object);
    local_irq_restore(flags);
    return pushed;
}

static inline bool os_percpu_append(void *const *lines, void *object)
{
    unsigned long flags;
    bool appended;

    local_irq_save(flags);
    appended = os_percpu_append_here(lines, object);
    local_irq_restore(flags);
    return appended;
}

/* Takes the object at `expected_head` off the ring of `cpu`, where the caller runs; NULL when it does
 * not, the head has moved, or the line is owned. */
void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head);

/* Takes the line of the CPU that the caller runs on; interrupts are off until it is released.
 * `token` is the address of a variable on the caller's stack. NULL when it is owned by another. */
struct os_percpu_line *os_percpu_take(void *lines, const void *token);

/* Takes the line of any CPU. False when it is owned, or may not be taken from here. */
bool os_percpu_take_remote(struct os_percpu_line *line, const void *token);

/* The same for as long as `visit` runs: on the CPU whose line it is, in an interrupt. So the line is not owned
 * while the thread that asked for the visit waits to run, which with virtual CPUs may be long. */
bool os_percpu_visit_remote(struct os_percpu_line *line, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data);

/* The remote take in its three steps, so that many lines share one round of interrupts. */
bool os_percpu_claim(struct os_percpu_line *line, const void *token);
bool os_percpu_fence_all(void); /* true: a kernel reaches all CPUs */
bool os_percpu_confirm(const struct os_percpu_line *line, const void *token);

static inline void os_percpu_line_init(struct os_percpu_line *line, unsigned cpu)
{
    line->cpu = cpu;
}

/* By the owner. */
static inline void os_percpu_limit_stack(struct os_percpu_line *line, unsigned limit)
{
    line->stack_limit = limit;
}

static inline void os_percpu_stop_ring(struct os_percpu_line *line, uint64_t stop)
{
    store_relaxed(&line->ring_stop, stop);
}

static inline void os_percpu_release(struct os_percpu_line *line)
{
    bool irq_off = line->irq_off;
    unsigned long flags = line->irq_flags;

    line->irq_off = false;
    /* Release: pairs with the acquire of the owner test in fast paths and takes. */
    store_release(&line->owner, (uintptr_t)0);
    if (irq_off)
        local_irq_restore(flags);
}

/* Gives back what was claimed, unless it is another's by now. */
static inline void os_percpu_unclaim(struct os_percpu_line *line, const void *token)
{
    if (os_percpu_confirm(line, token))
        os_percpu_release(line);
}

/* Whether lines of other CPUs can be taken at all. */
static inline bool os_percpu_reaches_others(void)
{
    return true;
}

#endif /* OS_KERNEL_PERCPU_H */
