/* SPDX-License-Identifier: MIT */
/* The options of what searches for bugs. */
#include "gp/user/domain.h"
#include "guard/instruments.h"
#include "guard/large_guard.h"
#include "guard/settings.h"
#include "heap/harmless.h"
#include "heap/size_class.h"
#include "process/option.h"

static void set_check(uint64_t wanted)
{
    store_relaxed(&check_wanted, wanted != 0);
    if (wanted)
        store_relaxed(&gp_check, true); /* debug builds always do */
}

/* Sets every part of the option; a later option in the list may change one of them. */
static void set_hardened(uint64_t wanted)
{
    zero_on_free = red_zones_wanted = shuffle_wanted = wanted;
    large_guard_wanted = size_class_of_empty = hardened_wanted = wanted;
}

const struct option guard_options[] = {
    {ROW_SWITCH("check"), .set = set_check, .at_start = true, .apply = instruments_start},
    {ROW_COUNT("trace", "0 to 32 calls", OS_TRACE_MAX), .word = &stack_depot_frames,
     .at_start = true, .apply = instruments_start},
    {ROW_SWITCH("zero_on_free"), .flag = &zero_on_free, .at_start = true,
     .apply = instruments_start},
    {ROW_SWITCH("hardened"), .set = set_hardened, .at_start = true, .apply = instruments_start},
    {ROW_SWITCH("red_zones"), .flag = &red_zones_wanted, .at_start = true,
     .apply = instruments_start},
    {ROW_SWITCH("shuffle"), .flag = &shuffle_wanted, .at_start = true, .apply = instruments_start},
    {ROW_SWITCH("guard_large"), .flag = &large_guard_wanted, .at_start = true,
     .apply = instruments_start},
    {ROW_COUNT("guard_first", "a number of large blocks, 0 to 16", LARGE_GUARD_FIRST_MOST),
     .word = &large_guard_first, .at_start = true, .apply = instruments_start},
    {ROW_SWITCH("guard_empty"), .flag = &size_class_of_empty, .at_start = true,
     .apply = instruments_start},
    {ROW_COUNT("guard", "0, or N to guard one allocation in N", UINT32_MAX),
     .word = &guard_interval, .at_start = true, .apply = instruments_start},
    {ROW_BYTES("quarantine", OPTION_LIMIT), .word = &quarantine_limit, .at_start = true,
     .apply = instruments_start},
    {ROW_SWITCH("annotate"), .flag = &annotate_wanted, .at_start = true,
     .apply = instruments_start},
    {.name = NULL},
};
