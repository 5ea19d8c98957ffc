/* SPDX-License-Identifier: MIT */
/* The tables' part of runtime/fork.c. */
#ifndef STRUCTURES_FORK_H
#define STRUCTURES_FORK_H

#include "base/base.h"

void tables_fork_prepare(void);
void tables_fork_child(bool whole);
void tables_fork_done(void);

#endif /* STRUCTURES_FORK_H */
