/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Atomic accesses, named by their order. They use compiler builtins, so the same text compiles in a
 * process and in a kernel, and there is one place to check when a barrier is in question.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#define load_relaxed(p)        __atomic_load_n((p), __ATOMIC_RELAXED)
#define load_acquire(p)        __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define store_relaxed(p, v)    __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define store_release(p, v)    __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define add_relaxed(p, v)      __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define sub_relaxed(p, v)      __atomic_fetch_sub((p), (v), __ATOMIC_RELAXED)
#define exchange_acquire(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQUIRE)
#define exchange_relaxed(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)

/* Sequentially consistent. The last updates *(expected) on failure. */
#define load_ordered(p)        __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define exchange_ordered(p, v) __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define compare_exchange(p, expected, v)                                                           \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)

/* Adds to a counter that has one writer at a time. That needs no read-modify-write, and readers
 * see whole values. */
#define count_add(p, v) store_relaxed((p), load_relaxed(p) + (v))

#define compiler_barrier() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#endif /* BASE_ATOMIC_H */
