/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Replaces base/atomic.h in a kernel (kernel/Kbuild). Defines the same names with primitives of
 * the kernel's memory model (tools/memory-model), which KCSAN knows as marked accesses.
 *
 * A number to which several CPUs add is a plain integer for slab and an atomic_t or atomic64_t
 * for the kernel. The size and alignment are the same, and only these macros access it.
 */
#ifndef BASE_ATOMIC_H
#define BASE_ATOMIC_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>

#define load_relaxed(p)        READ_ONCE(*(p))
#define load_acquire(p)        smp_load_acquire(p)
#define store_relaxed(p, v)    WRITE_ONCE(*(p), (v))
#define store_release(p, v)    smp_store_release((p), (v))
#define exchange_acquire(p, v) xchg_acquire((p), (v))
#define exchange_relaxed(p, v) xchg_relaxed((p), (v))

/* Both return the previous value, like the compiler's builtins. */
#define add_relaxed(p, v) ATOMIC_FETCH(add, (p), (v))
#define sub_relaxed(p, v) ATOMIC_FETCH(sub, (p), (v))
#define ATOMIC_FETCH(what, p, v)                                                                   \
    (BUILD_BUG_ON_ZERO(sizeof *(p) != sizeof(atomic_t) && sizeof *(p) != sizeof(atomic64_t)) +     \
     (typeof(*(p)))(sizeof *(p) == sizeof(atomic_t)                                                \
                        ? atomic_fetch_##what##_relaxed((int)(v), (atomic_t *)(p))                 \
                        : atomic64_fetch_##what##_relaxed((s64)(v), (atomic64_t *)(p))))

/* Fully ordered on success. On failure, updates *(expected) with acquire order. */
#define compare_exchange(p, expected, v)                                                           \
    ({                                                                                             \
        bool exchanged_ = try_cmpxchg((p), (expected), (v));                                       \
                                                                                                   \
        if (!exchanged_)                                                                           \
            smp_acquire__after_ctrl_dep();                                                         \
        exchanged_;                                                                                \
    })

/* For counters with one writer at a time. Needs no read-modify-write; readers see whole values. */
#define count_add(p, v) store_relaxed((p), load_relaxed(p) + (v))

#define compiler_barrier() barrier()

#endif /* BASE_ATOMIC_H */
