/* SPDX-License-Identifier: MIT */
/* Refuses an update that was given one object both as the old and as the new one. The caller would
 * own the object, and defer it, while readers still find it in the table. */
#ifndef TABLES_OWN_SUCCESSOR_H
#define TABLES_OWN_SUCCESSOR_H

#include <errno.h>

#include "os/os.h"

/* Reports that on behalf of the public function `what`, and returns EINVAL. Async-signal-safe. */
static inline __attribute__((cold)) int refuse_own_successor(const char *what)
{
    os_report("%s: the new object is the old one, which stays in its place", what);
    return EINVAL;
}

#endif /* TABLES_OWN_SUCCESSOR_H */
