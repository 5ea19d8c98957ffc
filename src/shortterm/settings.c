/* SPDX-License-Identifier: MIT */
#include "shortterm/settings.h"

#include "os/os.h"

uint32_t scm_max_extension = 4095;
bool scm_eager, scm_deferred;

static const char *const collections[] = {"lazy", "eager", NULL};
static const char *const expired[] = {"free", "deferred", NULL};

static void set_max_extension(uint64_t units)
{
    store_relaxed(&scm_max_extension, narrow(uint32_t, units));
}

const struct option shortterm_options[] = {
    {ROW_COUNT("scm_max_extension", "a number of ticks, 0 to 1048576", SCM_EXTENSION_MOST),
     .set = set_max_extension},
    {ROW_CHOICE("scm_collection", "lazy or eager", collections), .flag = &scm_eager},
    {ROW_CHOICE("scm_expired", "free or deferred", expired), .flag = &scm_deferred},
    {.name = NULL},
};
