/* SPDX-License-Identifier: MIT */
/* What structures and debug/ both ask: does an option or a tool search for bugs? Constant once the
 * first cache is made. */
#ifndef OS_POSIX_BUG_SEARCH_H
#define OS_POSIX_BUG_SEARCH_H

#include "base/base.h"

extern bool check_wanted;    /* the option check=1 */
extern bool hardened_wanted; /* the option hardened=1 */
extern bool annotate_on;     /* a tool that watches memory or leaks is present */

#endif /* OS_POSIX_BUG_SEARCH_H */
