/* SPDX-License-Identifier: MIT */
/*
 * Start options that this layer reads (docs/reference/options.md). They change only before the
 * first cache is made, under heap_lock.
 */
#ifndef GUARD_SETTINGS_H
#define GUARD_SETTINGS_H

#include "base/base.h"
#include "bug_search.h"
#include "process/option.h"

extern bool annotate_wanted;
extern bool zero_on_free;
extern bool red_zones_wanted, shuffle_wanted;
extern bool large_guard_wanted;
extern uint64_t large_guard_first;  /* large blocks guarded without large_guard_wanted */
extern uint64_t guard_interval;     /* one in this number of allocations is guarded; 0: none */
extern uint64_t quarantine_limit;   /* bytes; 0 if nothing rests */
extern uint64_t stack_depot_frames; /* limit of frames in a trace; 0 captures none */

extern const struct option guard_options[]; /* their rows, in options.c */

#endif /* GUARD_SETTINGS_H */
