/* SPDX-License-Identifier: MIT */
#include "os/os.h"

#include "guard/settings.h"

bool annotate_wanted = true;
bool zero_on_free;
bool red_zones_wanted, shuffle_wanted;
bool large_guard_wanted;
uint64_t large_guard_first = 8;
uint64_t guard_interval READ_MOSTLY = 0;
uint64_t quarantine_limit;
uint64_t stack_depot_frames = 12;
