/* SPDX-License-Identifier: MIT */
/* Options that short-term memory reads (docs/reference/options.md). Atomic: they change at any time. */
#ifndef SCM_SETTINGS_H
#define SCM_SETTINGS_H

#include "base/base.h"

/* How far ahead a date may be, and the most that the option may say. */
#define SCM_EXTENSION_MOST (UINT32_C(1) << 20)
extern uint32_t scm_max_extension;

extern bool scm_eager;    /* a tick frees all that has expired; else every call a little of it */
extern bool scm_deferred; /* what has expired is deferred, for readers that still hold it */

#endif /* SCM_SETTINGS_H */
