/* SPDX-License-Identifier: MIT */
/* Checks that an object waits for the domain of the object's readers (see check_reader.c). */
#ifndef TOOLKIT_CALLBACKS_CHECK_READER_H
#define TOOLKIT_CALLBACKS_CHECK_READER_H

struct prudence_domain;

/* Called before a callback for `head` is queued after a grace period of `domain`. Reports an object
 * whose cache has another domain. */
void check_reader_domain(struct prudence_domain *domain, const void *head, const char *what);

#endif /* TOOLKIT_CALLBACKS_CHECK_READER_H */
