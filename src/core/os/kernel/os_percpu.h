/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Per-CPU caches, protected by switching interrupts off on the owning CPU (docs/adr/0018).
 *
 * The lines and the protocol are as in a process, with a few instructions with interrupts off
 * instead of the restartable sequence. Only an NMI can interrupt these, and NMIs may not call
 * (prudence_*() refuse).
 *  - Fast paths and the local take test owner == 0 and commit with interrupts off.
 *  - A remote take is a local take in an interrupt on that CPU, so that the line is not owned while
 *    the interrupt is on the way. The caller must be a task with interrupts on; otherwise the take
 *    fails, as if the line were owned. A dead CPU runs no fast paths, so its line is taken by
 *    compare-and-swap.
 *  - To take all CPUs' lines (destruction of a cache), a thread claims them by compare-and-swap,
 *    sends one round of interrupts and rechecks, as in a process. After the interrupts, no fast
 *    path that tested owner == 0 before is half done. The recheck finds a local take that overwrote
 *    the token in between.
 *  - Release stores 0 with release order.
 * The taker of a line keeps interrupts off until the release. So no interrupt finds the line of the
 * CPU it runs on owned, or delays the release of another CPU's line. The time is short, because the
 * owner copies at most a batch and sometimes grows the arrays. A line is found owned only while
 * another CPU empties it; the caller then goes to the node.
 */
#ifndef OS_KERNEL_PERCPU_H
#define OS_KERNEL_PERCPU_H

#include "base/atomic.h"
#include "base/base.h"

#define OS_PERCPU_STRIDE ((size_t)256)

#define STACK_COUNT_BITS 20
#define STACK_COUNT_MASK ((UINT64_C(1) << STACK_COUNT_BITS) - 1)
#define STACK_POP        ((UINT64_C(1) << STACK_COUNT_BITS) - 1) /* a pop more, an object less */

struct os_percpu_line {
    uintptr_t owner;     /* 0, or the owner's token */
    uint64_t stack_word; /* pops << 20 | objects on the stack */
    void **stack;
    uint64_t stack_limit; /* objects that may be on the stack */
    uint64_t ring_tail;   /* objects ever appended */
    uint64_t ring_stop;   /* the tail at which an append takes the slow path */
    uintptr_t ring_turn;  /* slot 0, minus the tail at which this turn of the ring began */
    uint64_t ring_mask;   /* slots of the ring - 1 */
    uint64_t ring_head;   /* objects ever removed */
    void **ring;
    unsigned cpu; /* constant */
    bool irq_off; /* the owner has interrupts off; before, they were `irq_flags` */
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

/* Fast paths are always allowed, except on lines that are owned permanently. */
#define os_percpu_rseq true
extern void *os_percpu_owned_lines;

/* Offset of a CPU's line from the first CPU's; constant. */
DECLARE_PER_CPU(unsigned long, os_percpu_offset);

/* This and the next three functions run with interrupts off. */
static __always_inline struct os_percpu_line *os_percpu_here(void *const *lines)
{
    return (struct os_percpu_line *)((char *)*lines + __this_cpu_read(os_percpu_offset));
}

/* Fast paths load the owner first, with acquire. Values read earlier could be older than the last
 * owner's stores. */

/* Pops the top of the stack. Returns NULL if the stack is empty or the line owned. */
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

/* Pushes an object. Returns false if the stack is full or the line owned. */
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

/* Appends to the ring. Returns false if the tail is at the stop, the line is owned, or the slot
 * before holds the same object (the slot below slot 0 belongs to the stack). */
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
                 object)) /* deferred twice, or the ring is unused */
        return false;
    ((void **)line->ring_turn)[tail] = object;
    store_relaxed(&line->ring_tail, tail + 1);
    return true;
}

/* Variants of these three for any interrupt state, for the gate (slab/gate.c). */
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

/* In a process another way may serve as well (os/posix/os_percpu.h). */
#define os_percpu_serve_pop    os_percpu_pop
#define os_percpu_serve_push   os_percpu_push
#define os_percpu_serve_append os_percpu_append

/* Takes the object at `expected_head` off the ring of `cpu`. Returns NULL if the caller does not
 * run on `cpu`, the head has moved, or the line is owned. */
void *os_percpu_remove(void *const *lines, unsigned cpu, uint64_t expected_head);

/* Takes the line of the caller's CPU; interrupts are off until the release. `token` is the address
 * of a variable on the caller's stack. Returns NULL if the line is owned. */
struct os_percpu_line *os_percpu_take(void *lines, const void *token);

/* Takes the line of any CPU. Returns false if the line is owned or may not be taken from here. */
bool os_percpu_take_remote(struct os_percpu_line *line, const void *token);

/* Takes the line while `visit` runs, on the line's CPU in an interrupt. So the line is not owned
 * while the requesting thread waits to run, which with virtual CPUs may be long. */
bool os_percpu_visit_remote(struct os_percpu_line *line, const void *token,
                            void (*visit)(struct os_percpu_line *line, void *data), void *data);

/* The three steps of a remote take, so that many lines share one round of interrupts. */
bool os_percpu_claim(struct os_percpu_line *line, const void *token);
bool os_percpu_fence_all(void); /* true, because a kernel reaches all CPUs */
bool os_percpu_confirm(const struct os_percpu_line *line, const void *token);

static inline void os_percpu_line_init(struct os_percpu_line *line, unsigned cpu)
{
    line->cpu = cpu;
}

/* Called by the owner. */
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
    /* Pairs with the acquire of the owner test in fast paths and takes. */
    store_release(&line->owner, (uintptr_t)0);
    if (irq_off)
        local_irq_restore(flags);
}

/* Releases a claimed line, unless another taker has overwritten the claim. */
static inline void os_percpu_unclaim(struct os_percpu_line *line, const void *token)
{
    if (os_percpu_confirm(line, token))
        os_percpu_release(line);
}

/* Returns whether lines of other CPUs can be taken at all. */
static inline bool os_percpu_reaches_others(void)
{
    return true;
}

#endif /* OS_KERNEL_PERCPU_H */
