/* SPDX-License-Identifier: MIT */
/*
 * A split counter: each CPU adds to a number of its own, and a reader of the sum adds them up. For statistics that are changed
 * often and read rarely. (P. McKenney, "Exploiting Deferred Destruction", 2004, section 2.2.13.)
 *
 *  - prudence_counter_sum is exact when no thread adds meanwhile. Otherwise each addition that ended before it began is in it, none that
 *    begins after it, and of those beside it any: it is not the value at one moment.
 *  - Threads, signals: additions and sums may be made anywhere, in signal handlers as well. Nothing waits.
 *  - Fork: a child has the additions that had ended, and of those under way any.
 *  - Memory: 256 bytes for each CPU that the system may have.
 *  - Cost: an addition is one restartable sequence of plain instructions on a line of this CPU's, without an atomic operation; where
 *    there are no restartable sequences, an atomic addition there. A sum loads a line of each CPU, which slows the next
 *    addition on that CPU.
 */
#ifndef PRUDENCE_COUNTER_H
#define PRUDENCE_COUNTER_H

#include <stdint.h>

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_counter;

/* A counter that is 0. NULL with errno ENOMEM: no memory. */
PRUDENCE_API struct prudence_counter *prudence_counter_create(void);

/* NULL is ignored. No thread may use the counter any more. */
PRUDENCE_API void prudence_counter_destroy(struct prudence_counter *counter);

/* Any number, also below 0. The sum is modulo 2^64. */
PRUDENCE_API void prudence_counter_add(struct prudence_counter *counter, int64_t number);
PRUDENCE_API int64_t prudence_counter_sum(const struct prudence_counter *counter);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_COUNTER_H */
