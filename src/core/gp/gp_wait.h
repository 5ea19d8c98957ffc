/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Grace periods, for threads that wait: whether one may, what holds the grace period up, and how
 * the blocking reader fares. Deferrals never wait in a kernel, and callers push no grace period
 * there, so most answers are constant there.
 */
#ifndef GP_WAIT_H
#define GP_WAIT_H

#include "gp/gp.h"

/* Returns whether this thread may wait at all: the thread is not inside a read-side critical
 * section of any domain, nor online in a qsbr domain. For implicit waits. */
bool gp_may_wait(void);

/*
 * For implicit waits: gp_worth_waiting() returns false while the reader that outlasted an earlier
 * wait (gp_note_expired) is still in the same section.
 */
bool gp_worth_waiting(struct prudence_domain *domain);
void gp_note_expired(struct prudence_domain *domain);

/* Like gp_wait(), but ends as soon as only names hold up the grace period; then a poll of each
 * object comes next. An implicit wait does not drive domains whose callers advance. */
bool gp_wait_for_sections(struct prudence_domain *domain, gp_cookie cookie, uint64_t deadline,
                          bool is_implicit);

/* Returns whether a reader is known to hold up the grace period under way. While true, pushing
 * changes nothing. Costs some loads. */
bool gp_is_held_up(const struct prudence_domain *domain);

/* Returns whether one section has held up a caller that waits since `began` for `nanoseconds` or
 * more, although the section's thread could have ended it: the thread was blocked, or had a CPU. A
 * thread without a CPU may stay 20 times as long. If readers cannot be seen, returns whether a
 * grace period is under way. For a thread that waits and has run out of patience; makes some system
 * calls at times. */
bool gp_outstays(struct prudence_domain *domain, uint64_t began, uint64_t nanoseconds);

/* The state of the blocking reader, in rising order of what speaks against letting more wait. */
enum gp_reader_state {
    GP_READER_NONE,      /* no reader is known to be blocking */
    GP_READER_LACKS_CPU, /* it wants a CPU, had none between two checks, and hardly any before */
    GP_READER_NEW,       /* not known yet: read once, or it has a CPU */
    GP_READER_UNKNOWN,   /* the domain or the system does not report */
    GP_READER_STAYS,     /* it is blocked, or had a CPU long enough to leave */
};

/* For a thread that waits and may let more memory wait instead. Makes some system calls at
 * times. */
enum gp_reader_state gp_state_of_reader(struct prudence_domain *domain);

/* Returns how many grace periods have ended in all domains since the first call, which starts the
 * count. */
uint64_t gp_ended(void);

/* Reports that garbage has passed the limit of the given option because the deferring thread could
 * not be held back. Names the blocking readers. Reports at once the first time, then after
 * pauses from 10 s to 11 minutes. The caller holds no lock. */
void gp_overrun(const char *option, uint64_t bytes, uint64_t limit);

#endif /* GP_WAIT_H */
