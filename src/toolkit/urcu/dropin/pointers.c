/* SPDX-License-Identifier: MIT */
/*
 * The functions of liburcu's own <urcu-pointer.h>. Objects that were compiled with that header and
 * without _LGPL_SOURCE call them; our headers inline the same. They are a library of their own,
 * libprudence-urcu, because libprudence may be loaded with liburcu in a process, and there each
 * name must be liburcu's. No function has state, takes a lock or waits.
 */
#include <prudence/urcu-compat.h>

#include <stdbool.h>

/* Weak, because liburcu defines the same symbols, and a program may link it, even statically. */
#define WEAK __attribute__((weak))

WEAK void *rcu_dereference_sym(void *p)
{
    return p;
}

/* For liburcu after 0.15, which passes the address, so that the load is in the function. */
WEAK void *rcu_dereference_sym2(void **p)
{
    return __atomic_load_n(p, __ATOMIC_CONSUME);
}

WEAK void *rcu_set_pointer_sym(void **p, void *v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
    return v;
}

WEAK void *rcu_xchg_pointer_sym(void **p, void *v)
{
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}

WEAK void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *fresh)
{
    __atomic_compare_exchange_n(p, &old, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return old;
}
