/* SPDX-License-Identifier: MIT */
/* Numbers of CPUs that threads hold (bias.c), for percpu.c. */
#ifndef OS_POSIX_BIAS_H
#define OS_POSIX_BIAS_H

#include "os/os.h"

/* Called at start and by tests. From now on threads may hold numbers if `may`, and if the system
 * has membarriers. */
void bias_start(bool may);

/* Owns the line of the number that this thread holds. Returns NULL if it holds none any more, or
 * if the line is owned. Async-signal-safe. */
struct os_percpu_line *bias_step_in(void *lines);

/* Tries to make this thread the holder of a number, or to end that another thread holds it. */
void bias_take(unsigned number, bool may_hold);

/*
 * Returns whether no holder is inside a line that the caller has claimed by compare-and-swap. If a
 * thread holds the number, that takes a fence on all CPUs, which the caller must allow; otherwise
 * the answer is no.
 */
bool bias_is_out(const struct os_percpu_line *line, bool may_fence);

/* Waits until no other thread is inside a line that it stepped into before the caller claimed
 * lines. Returns false if the other CPUs cannot be fenced. */
bool bias_all_are_out(void);

#endif /* OS_POSIX_BIAS_H */
