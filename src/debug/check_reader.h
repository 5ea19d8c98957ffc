/* SPDX-License-Identifier: MIT */
/* Under check=1: whether what an object waits for is what protects its readers (see check_reader.c). */
#ifndef DEBUG_CHECK_READER_H
#define DEBUG_CHECK_READER_H

struct prudence_domain;

/* `what` is about to queue a callback for `head` behind a grace period of `domain`. */
void check_callback_domain(struct prudence_domain *domain, const void *head, const char *what);

#endif /* DEBUG_CHECK_READER_H */
