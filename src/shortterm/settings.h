/* SPDX-License-Identifier: MIT */
/* Options of short-term memory (docs/reference/options.md). All are atomic, because they may change
 * at any time. */
#ifndef SHORTTERM_SETTINGS_H
#define SHORTTERM_SETTINGS_H

#include "process/option.h"

/* The largest distance of a date, and the largest value of that option. */
#define SCM_EXTENSION_MOST (UINT32_C(1) << 20)
extern uint32_t scm_max_extension;

extern bool scm_eager;    /* a tick frees all expired objects, not a few in every call */
extern bool scm_deferred; /* expired objects are deferred, for readers that hold them */

extern const struct option shortterm_options[]; /* their rows */

#endif /* SHORTTERM_SETTINGS_H */
