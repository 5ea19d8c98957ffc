/* SPDX-License-Identifier: MIT */
/*
 * Start options that this layer reads (docs/reference/options.md). They change only before the first cache is made,
 * under heap_lock.
 */
#ifndef DEBUG_SETTINGS_H
#define DEBUG_SETTINGS_H

#include "base/base.h"

extern bool check_wanted;
extern bool annotate_wanted;
extern bool zero_on_free;
extern bool red_zones_wanted, shuffle_wanted;
extern bool large_guard_wanted, empty_guard_wanted;
extern uint64_t large_guard_first;  /* large blocks that are guarded without it */
extern uint64_t guard_interval;     /* one allocation in so many is guarded; 0: none */
extern uint64_t quarantine_limit;   /* bytes; 0: nothing rests */
extern uint64_t stack_depot_frames; /* of a trace; 0: none are captured */

#endif /* DEBUG_SETTINGS_H */
