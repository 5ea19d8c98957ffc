/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Work that one of many threads does, at most once per interval. */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include "base/atomic.h"
#include "base/base.h"

/*
 * Returns whether this thread does the work now, because `pause` has passed since the last time and
 * no other thread was first. The difference is signed, because another thread may have stored a
 * later time already. That means too soon, not long ago.
 */
static inline bool is_time_again(uint64_t *last, uint64_t now, uint64_t pause)
{
    uint64_t then = load_relaxed(last);

    return (int64_t)(now - then) >= (int64_t)pause && compare_exchange(last, &then, now);
}

#endif /* BASE_PACE_H */
