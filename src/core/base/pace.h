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

/* Pauses of work that recurs, a message for example. Begins as zeros; both words are atomic. */
struct growing_pauses {
    uint64_t end;  /* ns; when the work is due again; 0: at once */
    uint64_t last; /* ns; 0: none yet */
};

/*
 * Returns whether this thread does the work now, because the pause is over and no other thread was
 * first. The next pause is twice as long, from `first` to `most`.
 */
static inline bool is_time_after_pause(struct growing_pauses *pauses, uint64_t now, uint64_t first,
                                       uint64_t most)
{
    uint64_t end = load_relaxed(&pauses->end), last = load_relaxed(&pauses->last);
    uint64_t next = last ? min_size(2 * last, most) : first;

    if (now < end || !compare_exchange(&pauses->end, &end, now + next))
        return false;
    store_relaxed(&pauses->last, next);
    return true;
}

#endif /* BASE_PACE_H */
