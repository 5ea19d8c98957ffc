/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * src/base/atomic.h in a kernel, where this file is found instead (kernel/Kbuild): the same names, made of the
 * primitives that the kernel's memory model defines (tools/memory-model), and that KCSAN knows as marked accesses.
 *
 * A number that several CPUs add to is a plain integer for src/slab, and an atomic_t or atomic64_t for the kernel: the
 * same size and alignment, and both accessed by these macros only.
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

/* Both give the value before, as the compiler's builtins do. */
#define add_relaxed(p, v) ATOMIC_FETCH(add, (p), (v))
#define sub_relaxed(p, v) ATOMIC_FETCH(sub, (p), (v))
#define ATOMIC_FETCH(what, p, v)                                                                   \
    (BUILD_BUG_ON_ZERO(sizeof *(p) != sizeof(atomic_t) && sizeof *(p) != sizeof(atomic64_t)) +     \
     (typeof(*(p)))(sizeof *(p) == sizeof(atomic_t)                                                \
                        ? atomic_fetch_##what##_relaxed((int)(v), (atomic_t *)(p))                 \
                        : atomic64_fetch_##what##_relaxed((s64)(v), (atomic64_t *)(p))))

/* Fully ordered when it succeeds. When it fails *(expected) is updated, and read with acquire order. */
#define compare_exchange(p, expected, v)                                                           \
    ({                                                                                             \
        bool exchanged_ = try_cmpxchg((p), (expected), (v));                                       \
                                                                                                   \
        if (!exchanged_)                                                                           \
            smp_acquire__after_ctrl_dep();                                                         \
        exchanged_;                                                                                \
    })

/* A counter with one writer at a time: no read-modify-write needed, readers see whole values. */
#define count_add(p, v) store_relaxed((p), load_relaxed(p) + (v))

#define compiler_barrier() barrier()

#endif /* BASE_ATOMIC_H */
