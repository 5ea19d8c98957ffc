/* SPDX-License-Identifier: MIT */
/*
 * Attributes that a program gives to caches, domains and tables. A structure of attributes begins
 * with the size that the program was compiled with, and grows at its end.
 */
#ifndef OS_POSIX_VALID_ATTR_H
#define OS_POSIX_VALID_ATTR_H

#include <stdbool.h>
#include <stddef.h>

/* Names in the report of an error. */
struct attr_names {
    const char *what; /* the function that the program called */
    const char *kind; /* of the object to be made, and its name */
    const char *name;
    const char *argument;
    const char *structure;
};

/* Copies the program's attributes, `given`, to `known`, of which this library has `size` bytes.
 * Members that the program does not have become 0. Returns false, and reports why, if the program's
 * structure is smaller than `least`, its first version, is larger than a page or no multiple of 8,
 * or has a member that this library does not have and that is not 0. */
bool attr_take(const struct attr_names *names, const void *given, void *known, size_t size,
               size_t least);

#endif /* OS_POSIX_VALID_ATTR_H */
