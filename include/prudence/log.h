/* SPDX-License-Identifier: MIT */
/*
 * A log buffer. Readers take places there and fill them, inside their sections. One thread takes
 * the buffer away, waits for a grace period, after which every place is filled, and writes all of
 * it out. No thread marks a place as filled, and no thread waits for one that fills. (P. McKenney,
 * "Exploiting Deferred Destruction", 2004, section 3.2: a log buffer.)
 *
 *     prudence_read_lock();                    prudence_log_flush(log, write_to, &file);
 *     entry = prudence_log_reserve(log, sizeof *entry);
 *     if (entry)
 *         *entry = (struct entry){...};
 *     prudence_read_unlock();
 *
 *  - Sections: places are taken and filled inside one read-side section of the log's domain. A
 *    place that is not filled has any content.
 *  - Full: prudence_log_reserve returns NULL until the next flush, and the entry is counted as
 *    dropped. Nothing waits.
 *  - Order: entries of one buffer are in the order in which their places were taken. Buffers are
 *    written one after the other.
 *  - Signals: places may be taken in signal handlers. Fork: a log belongs to one process. A child
 *    makes another. In the child's copy, places of threads that the child does not have may be
 *    unfilled, and both write the copy or, if a flush was under way, neither does.
 *  - Cost: a place is an atomic addition on a line that all share. A flush is a grace period.
 *  - Memory: two buffers.
 */
#ifndef PRUDENCE_LOG_H
#define PRUDENCE_LOG_H

#include <stddef.h>
#include <stdint.h>

#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

struct prudence_log;

/*
 * Makes a log of two buffers of `bytes` each, from 8 to 2^40, rounded up to a multiple of 8.
 * `domain` is the domain whose readers fill the log; NULL: the default domain. Returns NULL with
 * errno EINVAL (a message on standard error names the cause) or ENOMEM.
 */
PRUDENCE_API struct prudence_log *prudence_log_create(size_t bytes, struct prudence_domain *domain);

/*
 * Frees the log, which no thread may use any more. Entries that were not flushed are lost. Returns
 * 0, or an error number with nothing done: EBUSY while a flush is under way; EINVAL for NULL.
 */
PRUDENCE_API int prudence_log_destroy(struct prudence_log *log);

/*
 * Returns a place for `size` bytes, at an address that 8 divides; places are rounded up to 8 bytes.
 * Returns NULL if there is no room (until a flush, or ever, for more than a buffer) or `size` is 0.
 */
PRUDENCE_API void *prudence_log_reserve(struct prudence_log *log, size_t size);

/*
 * Takes the entries written so far, waits until they are complete, and calls write(context,
 * entries, bytes) with them, unless there are none. `entries` is valid until `write` returns.
 * Returns 0, or an error number with nothing done: EBUSY if another flush is under way, or in a
 * handler of pthread_atfork; EDEADLK, with a report, where prudence_domain_synchronize of the log's
 * domain fails (inside a section), and online in any qsbr domain; EINVAL for NULL.
 */
PRUDENCE_API int prudence_log_flush(struct prudence_log *log,
                                    void (*write)(void *context, const void *entries, size_t bytes),
                                    void *context);

/* Returns the number of places that were refused for want of room. */
PRUDENCE_API uint64_t prudence_log_dropped(const struct prudence_log *log);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_LOG_H */
