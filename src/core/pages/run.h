/* SPDX-License-Identifier: MIT */
/* Private to the page source: runs, with their accounting (see run.c). */
#ifndef PAGES_RUN_H
#define PAGES_RUN_H

#include "base/base.h"

struct region;

/* `alignment` and `bytes` are whole pages. Returns NULL if there is no memory or the limit is
 * reached; *clean shows whether the run is zeroed. */
void *run_alloc(size_t bytes, size_t alignment, unsigned node, bool *clean);
/* Grow a run in place (false if the pages after it are taken), or shrink it. */
bool run_grow(struct region *region, char *run, size_t bytes, size_t wanted, void *owner);
void run_shrink(struct region *region, char *run, size_t bytes, size_t wanted, void *owner);
/* Moves a run's memory to a huge mapping of `wanted` bytes; returns NULL if it stays. */
char *run_move_to_huge_mapping(struct region *region, char *run, size_t bytes, size_t wanted,
                               void *owner);

/* Under pages_lock: put back a run or its end; run_put_clean() one whose memory went to the system
 * and is not accounted for. */
void run_put(struct region *region, const char *pages, size_t bytes);
void run_put_clean(struct region *region, const char *pages, size_t bytes);

/* For window.c. Under pages_lock: counts a taken run. */
void run_count(unsigned pages, unsigned dirty);
/* Under pages_lock: returns the bytes to check for before they are touched, or 0. */
size_t run_take_unchecked(void);
/* Without the lock: adds a made region; false if the arena has no room. */
bool run_append_region(struct region *region);

#endif /* PAGES_RUN_H */
