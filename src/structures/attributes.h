/* SPDX-License-Identifier: MIT */
/* Attributes of tables, as a program gives them (see attributes.c). */
#ifndef STRUCTURES_ATTRIBUTES_H
#define STRUCTURES_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Copies the attributes that the caller of the public function `what` gave for the table of this
 * name; NULL means defaults, which are 0. `structure` names the type of *attributes, which begins
 * with its size. Returns false, with a report and errno EINVAL, if the name or the attributes are
 * not valid (os/posix/valid_attr.h).
 */
bool attributes_take(const char *what, const char *name, const char *structure, const void *given,
                     void *attributes, size_t size);

#endif /* STRUCTURES_ATTRIBUTES_H */
