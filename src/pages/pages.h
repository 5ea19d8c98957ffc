/* SPDX-License-Identifier: MIT */
/* The page source, for the runtime: what it serves is in os/os.h. */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include "base/base.h"

struct os_pages_stats;

/* As os_pages_stats, for a thread that may hold any lock. False: it is not told now. */
bool pages_try_stats(struct os_pages_stats *stats);

/* Where the figures of os_pages_stats stand, for programs that read this process's memory (runtime/export.c). */
struct pages_words {
    const uint64_t *used, *used_peak, *retained, *metadata;
};
void pages_words(struct pages_words *words);

/* Around fork, after and before the locks of the layers above. */
void pages_fork_prepare(void);
void pages_fork_child(bool whole);
void pages_fork_done(void);

#endif /* PAGES_PAGES_H */
