/* SPDX-License-Identifier: MIT */
/*
 * A daemon per place, and the timer that wakes them: common code of rcu-krcud and rcu-preempt (the
 * thesis's C.2.1, C.3).
 *
 * The timer expires every fifth tick while there is a callback anywhere, and wakes all daemons. A
 * daemon takes its place's new callbacks, advances them by batches.h, and asks the variant whether
 * the place has passed. It calls the callbacks itself, so an idle place may have some.
 *
 * A daemon is a separate thread, not a switch on its CPU: it reads the place's counters from
 * outside, and so does not displace the idle loop, which the original had to take care of. New
 * callbacks are under a lock, because no interrupts can be disabled.
 */
#ifndef VARIANTS_DAEMONS_H
#define VARIANTS_DAEMONS_H

#include "variant.h"

/* `has_passed` says whether the place has passed a quiescent state since that batch began; only
 * the place's daemon calls it, after a full fence. */
void daemons_start(unsigned places, bool (*has_passed)(unsigned place, uint64_t batch));
/* Called when no callback remains. */
void daemons_stop(void);
void daemons_call(unsigned place, struct variant_head *head, void (*func)(struct variant_head *));

#endif /* VARIANTS_DAEMONS_H */
