/* SPDX-License-Identifier: MIT */
/* The page source's calls for the runtime. The main interface is in os/os.h. */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include "base/base.h"

struct os_pages_stats;

/* Works as os_pages_stats, for a thread that may hold any lock. Returns false if the lock is
 * taken. */
bool pages_try_stats(struct os_pages_stats *stats);

/* Addresses of the figures of os_pages_stats, for programs that read this process's memory
 * (observe/watch_table.c). */
struct pages_words {
    const uint64_t *used, *used_peak, *retained;
};
extern const struct pages_words pages_words;

/* Notes that the program gave advice of `kind` (MAPPING_*, mapping.h) about `bytes` bytes from
 * `start` on, which are part of one allocation that begins at `pages`. It is undone when those
 * pages are freed. The caller holds nothing. */
void pages_note_advice(const void *pages, const void *start, size_t bytes, unsigned kind);

/* Undoes advice about freed pages that no region has. Returns false if some are missing, because
 * this process was forked while they had MADV_DONTFORK. The caller holds nothing. */
bool advice_undo_pages(void *pages, size_t bytes);

/* Called around fork, after and before the locks of the layers above. */
void pages_fork_prepare(void);
void pages_fork_child(bool whole);
void pages_fork_done(void);

#endif /* PAGES_PAGES_H */
