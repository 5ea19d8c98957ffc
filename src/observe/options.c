/* SPDX-License-Identifier: MIT */
/* The options of what is written of a process, and when. */
#include "heap/size_class.h"
#include "observe/options.h"
#include "observe/profile.h"
#include "observe/report_file.h"
#include "observe/signals.h"

static const char *const dumps[] = {"0", SIGNAL_NAMES, NULL};
static const char *const exports[] = {"0", SIGNAL_NAMES, "1", NULL};

static void set_dump(uint64_t choice)
{
    signal_choose(SIGNAL_DUMP, choice);
}

static void set_profile_signal(uint64_t choice)
{
    signal_choose(SIGNAL_PROFILE, choice);
}

/* Takes 1 for the default, because sampling each byte shows no more than sampling each object. */
static uint64_t rate_of(uint64_t value)
{
    return value == 1 ? SAMPLING_RATE_DEFAULT : min_size(value, SAMPLING_RATE_MOST);
}

static void set_profile(uint64_t value)
{
    store_relaxed(&sampling_rate, rate_of(value));
}

static bool profile_is_kept_from(uint64_t value)
{
    return profile_keeps_from(rate_of(value));
}

static void begin_profile(void)
{
    if (profile_begin())
        size_classes_begin_counting();
}

/* Every process can be watched (watch_table.c). Programs and scripts of earlier versions ask for
 * it. */
static void set_export(uint64_t choice)
{
    (void)choice;
}

const struct option observe_options[] = {
    {ROW_SWITCH("stats"), .set = exit_stats_set},
    {ROW_CHOICE("dump", "0, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", dumps), .set = set_dump},
    {ROW_TEXT("dump_file", OPTION_PATH, dump_set_file)},
    {ROW_TEXT("report_file", OPTION_PATH, report_file_set)},
    {ROW_CHOICE("export", "0, 1, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", exports), .set = set_export},
    {ROW_BYTES("profile", "bytes from one sample to the next (K, M, G), 1: 512K, 0: none"),
     .keeps_from = profile_is_kept_from, .set = set_profile, .at_start = true,
     .apply = profile_start, .begin = begin_profile},
    {ROW_TEXT("profile_file", OPTION_PATH, profile_dump_set_file)},
    {ROW_CHOICE("profile_signal", "0, SIGUSR1, SIGUSR2, SIGHUP or SIGQUIT", dumps),
     .set = set_profile_signal},
    {.name = NULL},
};
