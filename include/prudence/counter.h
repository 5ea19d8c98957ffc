/* SPDX-License-Identifier: MIT */
/*
 * A split counter: each CPU adds to a number of its own, and a reader of the sum adds these up. For
 * statistics that are changed often and read rarely. (P. McKenney, "Exploiting Deferred
 * Destruction", 2004, section 2.2.13.)
 *
 *  - prudence_counter_sum is exact if no thread adds at the same time. Otherwise it has each
 *    addition that ended before the sum began, none that begins after the sum ended, and any of
 *    those in between, so it is not the value at one moment.
 *  - Threads, signals: additions and sums may be made anywhere, also in signal handlers. Nothing
 *    waits.
 *  - Fork: a child has the additions that had ended, and any of those under way.
 *  - Memory: 256 bytes for each CPU that the system may have, and 256 more.
 *  - Cost: an addition is one restartable sequence of plain instructions on a line of this CPU,
 *    without an atomic operation; without restartable sequences, an atomic addition there. A sum
 *    loads a line of each CPU, which slows the next addition on that CPU.
 */
#ifndef PRUDENCE_COUNTER_H
#define PRUDENCE_COUNTER_H

#include <stdint.h>

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_counter;

/* Makes a counter that is 0. Returns NULL with errno ENOMEM if there is no memory. */
PRUDENCE_API struct prudence_counter *prudence_counter_create(void);

/* Frees the counter, which no thread may use any more. Returns 0, or EINVAL for NULL. */
PRUDENCE_API int prudence_counter_destroy(struct prudence_counter *counter);

/* Add any number, also below 0, or return the sum, which is modulo 2^64. */
PRUDENCE_API void prudence_counter_add(struct prudence_counter *counter, int64_t number);
PRUDENCE_API int64_t prudence_counter_sum(const struct prudence_counter *counter);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_COUNTER_H */
