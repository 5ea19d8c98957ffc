/* SPDX-License-Identifier: MIT */
/* A set of heads that wait, by which check=1 finds one that is passed twice (see head_set.c). */
#ifndef TOOLKIT_DOMAINS_HEAD_SET_H
#define TOOLKIT_DOMAINS_HEAD_SET_H

#include "os/os.h"

/* Open addressing. The lock of the owner guards all of it. */
struct head_set {
    uintptr_t *at; /* addresses; 0: none */
    size_t size, used;
};

bool head_set_add(struct head_set *set, const void *head);
void head_set_remove(struct head_set *set, const void *head);

#endif /* TOOLKIT_DOMAINS_HEAD_SET_H */
