/* SPDX-License-Identifier: MIT */
/*
 * Publishes and finds pointers. Programs also expect memory barriers and uatomic from this header.
 * They are liburcu's own, and are included if the headers are installed.
 */
#ifndef PRUDENCE_URCU_COMPAT_POINTER_H
#define PRUDENCE_URCU_COMPAT_POINTER_H

#if defined(__has_include)
#if __has_include(<urcu/uatomic.h>)
#include <urcu/compiler.h>
#include <urcu/arch.h>
#include <urcu/uatomic.h>
#endif
#endif

#define rcu_dereference(p) __atomic_load_n(&(p), __ATOMIC_CONSUME)

#define rcu_set_pointer(p, v)                                                                      \
    do {                                                                                           \
        __typeof__(*(p)) prudence_value_ = (v);                                                    \
        __atomic_store_n((p), prudence_value_, __ATOMIC_RELEASE);                                  \
    } while (0)

#define rcu_assign_pointer(p, v) rcu_set_pointer(&(p), (v))

/* Both return the previous value. */
#define rcu_xchg_pointer(p, v)                                                                     \
    (__extension__({                                                                               \
        __typeof__(*(p)) prudence_value_ = (v);                                                    \
        __atomic_exchange_n((p), prudence_value_, __ATOMIC_SEQ_CST);                               \
    }))

#define rcu_cmpxchg_pointer(p, old, fresh)                                                         \
    (__extension__({                                                                               \
        __typeof__(*(p)) prudence_old_ = (old), prudence_value_ = (fresh);                         \
        __atomic_compare_exchange_n((p), &prudence_old_, prudence_value_, 0, __ATOMIC_SEQ_CST,     \
                                    __ATOMIC_SEQ_CST);                                             \
        prudence_old_;                                                                             \
    }))

#define _rcu_dereference     rcu_dereference
#define _rcu_set_pointer     rcu_set_pointer
#define _rcu_assign_pointer  rcu_assign_pointer
#define _rcu_xchg_pointer    rcu_xchg_pointer
#define _rcu_cmpxchg_pointer rcu_cmpxchg_pointer

#endif /* PRUDENCE_URCU_COMPAT_POINTER_H */
