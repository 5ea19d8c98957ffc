/* SPDX-License-Identifier: MIT */
/* Where messages go (report.c, report_place.c), for the parts of the process above. */
#ifndef OS_POSIX_REPORT_H
#define OS_POSIX_REPORT_H

#include "base/base.h"

/* Notes which file descriptor 2 is. Called first at start; later calls do nothing. */
void posix_report_start(void);

/* Returns whether descriptor 2 may be written to. `last`: before the process ends. Keeps errno.
 * Async-signal-safe. */
bool posix_report_may_write(bool last);

/* Writes a message that may not go to descriptor 2, and returns whether it did; NULL if the option
 * report_file names no file. Atomic. */
extern bool (*posix_report_elsewhere)(const char *text, size_t length);

/* False lets every message through. For tests. */
extern bool posix_report_limited;

/* Messages that were not written: too many of a kind, or there was no place. Atomic. */
struct posix_report_losses {
    uint64_t too_many, no_place;
};
extern struct posix_report_losses posix_report_losses;

#endif /* OS_POSIX_REPORT_H */
