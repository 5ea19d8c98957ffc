/* SPDX-License-Identifier: MIT */
/* Names that a program gives to caches, domains and tables. */
#ifndef OS_POSIX_VALID_NAME_H
#define OS_POSIX_VALID_NAME_H

#include "os/os.h"

/* Returns whether there is a name; if not, reports the error of function `what`. */
static inline bool name_is_valid(const char *what, const char *name)
{
    if (name && *name)
        return true;
    os_report("%s: the name is %s", what, name ? "empty" : "NULL");
    return false;
}

#endif /* OS_POSIX_VALID_NAME_H */
