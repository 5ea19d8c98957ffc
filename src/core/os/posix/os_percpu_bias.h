/* SPDX-License-Identifier: MIT */
/*
 * Lines without sequences and without atomic operations (docs/adr/0146, bias.c). A thread may hold
 * a CPU's number. Then it owns lines of this number by a store in its own record.
 */
#ifndef OS_POSIX_PERCPU_BIAS_H
#define OS_POSIX_PERCPU_BIAS_H

#include "base/atomic.h"
#include "base/base.h"
#include "os_lock.h"

struct os_percpu_number {
    struct os_percpu_bias *holder; /* NULL, a record, or a word of bias.c; atomic */
    struct os_percpu_bias *before; /* the last holder, perhaps still inside; atomic */
    size_t offset;                 /* of a line of the number from the first CPU's; constant */
} __attribute__((aligned(CACHE_LINES_APART)));

/* A thread's record. Never unmapped, because other threads may still read it. */
struct os_percpu_bias {
    struct os_percpu_line *inside; /* owned by this record, or NULL; only the thread writes */
    const struct os_percpu_number *number; /* the last that the thread took; likewise */
    struct os_percpu_bias *next;           /* in the list of all records; constant */
    int thread, process;                   /* whose it is; 0: no thread's */
} __attribute__((aligned(CACHE_LINES_APART)));

/* This thread's record while it may hold a number, else NULL. */
extern HIDDEN __thread struct os_percpu_bias *os_percpu_bias
    __attribute__((tls_model("initial-exec")));

/*
 * Owns the line of the number that this thread holds; `hold` is `os_percpu_bias`, and `lines` the
 * first CPU's. The caller then calls os_percpu_step_out(), and between the two only what an owner
 * may. Returns NULL if the thread holds no number, has anything of the library already, or the line
 * is owned. os_busy (1) also keeps a signal handler from doing the same.
 *
 * Until `inside` is stored, a signal handler that finds the number lost may take another one, and a
 * later handler the same one again (bias.c). So the record's number is loaded once, and both the
 * line and the word that is checked are of that number. Handlers may come:
 *  - Before the load. The number is what they left.
 *  - Between the load and the store. If they leave the thread with another number, or none, the
 *    word does not name this record, and the thread steps out. If they leave it with the same
 *    number, the word names this record, and the line is the right one.
 *  - After the store. They find the record inside, and change nothing.
 * If the line and the word came from the record by two loads, a handler between the two and another
 * one before the store could leave the line of one number and the word of another that the thread
 * holds.
 */
static inline struct os_percpu_line *os_percpu_step_in_of(struct os_percpu_bias *hold, void *lines)
{
    const struct os_percpu_number *number;
    struct os_percpu_line *line;

    if (unlikely(!hold) || unlikely(os_busy))
        return NULL;
    os_busy = 1;
    compiler_barrier();
    number = load_relaxed(&hold->number);
    line = (struct os_percpu_line *)(void *)((char *)lines + number->offset);
    store_relaxed(&hold->inside, line);
    /* The membarrier of a thread that claims the line is the fence here. */
    compiler_barrier();
    /* Acquire: sees all that the last owner did. The owner is the line's first word. */
    if (likely(load_relaxed(&number->holder) == hold) && likely(!load_acquire((uintptr_t *)line)))
        return line;
    store_release(&hold->inside, (struct os_percpu_line *)NULL);
    compiler_barrier();
    os_busy = 0;
    return NULL;
}

static inline struct os_percpu_line *os_percpu_step_in(void *lines)
{
    return os_percpu_step_in_of(os_percpu_bias, lines);
}

/* Release: pairs with the acquire of the threads that check whether the line is free. `hold` is
 * this thread's record. */
static inline void os_percpu_step_out_of(struct os_percpu_bias *hold)
{
    store_release(&hold->inside, (struct os_percpu_line *)NULL);
    compiler_barrier();
    os_busy = 0;
}

static inline void os_percpu_step_out(void)
{
    os_percpu_step_out_of(os_percpu_bias);
}

/* Returns whether the calling thread owns the line by its record. */
static inline bool os_percpu_is_inside(const struct os_percpu_line *line)
{
    const struct os_percpu_bias *hold = os_percpu_bias;

    return hold && load_relaxed(&hold->inside) == line;
}

static inline void os_percpu_leave(void)
{
    store_release(&os_percpu_bias->inside, (struct os_percpu_line *)NULL);
}

#endif /* OS_POSIX_PERCPU_BIAS_H */
