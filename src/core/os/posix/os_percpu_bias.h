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

/* A thread's record. Never unmapped, because other threads may still read it. */
struct os_percpu_bias {
    struct os_percpu_line *inside;  /* owned by this record, or NULL; only its thread writes */
    size_t offset;                  /* of a line of the number from the first CPU's */
    struct os_percpu_bias **holder; /* of the number; says whether the thread still holds it */
    struct os_percpu_bias *next;    /* in the list of all records; constant */
    int thread, process;            /* whose it is; 0: no thread's */
} __attribute__((aligned(CACHE_LINES_APART)));

/* This thread's record while it may hold a number, else NULL. */
extern HIDDEN __thread struct os_percpu_bias *os_percpu_bias
    __attribute__((tls_model("initial-exec")));

/*
 * Owns the line of the number that this thread holds; `lines` is the first CPU's. The caller then
 * calls os_percpu_step_out(), and between the two only what an owner may. Returns NULL if the
 * thread holds no number, has anything of the library already, or the line is owned. os_busy (1)
 * also keeps a signal handler from doing the same.
 */
static inline struct os_percpu_line *os_percpu_step_in(void *lines)
{
    struct os_percpu_bias *hold = os_percpu_bias;
    struct os_percpu_line *line;

    if (unlikely(!hold) || unlikely(os_busy))
        return NULL;
    os_busy = 1;
    compiler_barrier();
    line = (struct os_percpu_line *)(void *)((char *)lines + hold->offset);
    store_relaxed(&hold->inside, line);
    /* The membarrier of a thread that claims the line is the fence here. */
    compiler_barrier();
    /* Acquire: sees all that the last owner did. The owner is the line's first word. */
    if (likely(load_relaxed(hold->holder) == hold) && likely(!load_acquire((uintptr_t *)line)))
        return line;
    store_release(&hold->inside, (struct os_percpu_line *)NULL);
    compiler_barrier();
    os_busy = 0;
    return NULL;
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
