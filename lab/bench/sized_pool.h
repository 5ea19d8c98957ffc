/* SPDX-License-Identifier: MIT */
/* Families over functions that take a size, which is all that their pool holds. */
#ifndef BENCH_SIZED_POOL_H
#define BENCH_SIZED_POOL_H

#include "loops.h"

static union pool pool_create(size_t object_size)
{
    return (union pool){.size = object_size};
}

#endif /* BENCH_SIZED_POOL_H */
