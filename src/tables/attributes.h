/* SPDX-License-Identifier: MIT */
/* Attributes of tables, as a program gives them (see attributes.c). */
#ifndef TABLES_ATTRIBUTES_H
#define TABLES_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>

struct prudence_domain;

/*
 * Copies the attributes that the caller of the public function `what` gave for the table of this
 * name; NULL means defaults, which are 0. `structure` names the type of *attributes, which begins
 * with its size. Returns false, with a report and errno EINVAL, if the name or the attributes are
 * not valid (os/posix/valid_attr.h).
 */
bool attributes_take(const char *what, const char *name, const char *structure, const void *given,
                     void *attributes, size_t size);

/* Returns whether `domain` (NULL: the default domain) has sections, which the readers of a table
 * need. If not, reports that for the function `what` and the table of this name, with errno
 * EINVAL. */
bool attributes_domain_is_valid(const char *what, const char *name,
                                const struct prudence_domain *domain);

#endif /* TABLES_ATTRIBUTES_H */
