/* SPDX-License-Identifier: MIT */
/*
 * Families whose readers name single objects. There is one object that is linked for readers; the
 * first is none of the pool's. A file that includes this has defined `retire`.
 */
#ifndef BENCH_NAMING_H
#define BENCH_NAMING_H

#include <stdlib.h>

static char first_linked;
static void *linked = &first_linked;

static inline void relink(union pool pool)
{
    void *fresh = allocate(pool), *old;

    if (!fresh)
        abort();
    old = __atomic_exchange_n(&linked, fresh, __ATOMIC_ACQ_REL);
    if (old != &first_linked)
        retire(pool, old);
}

#endif /* BENCH_NAMING_H */
