/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What any number of threads come to, and one of them does, at most once in a while. */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include "base/atomic.h"
#include "base/base.h"

/*
 * Whether this thread is the one that does it now: `pause` has passed since it was done last, and no other thread was
 * first. Signed, because another thread may have read its clock later and be here already: then it is too soon, not
 * long ago.
 */
static inline bool is_time_again(uint64_t *last, uint64_t now, uint64_t pause)
{
    uint64_t then = load_relaxed(last);

    return (int64_t)(now - then) >= (int64_t)pause && compare_exchange(last, &then, now);
}

#endif /* BASE_PACE_H */
