/* SPDX-License-Identifier: MIT */
/* The tables' part of process/fork.c. */
#ifndef TABLES_FORK_H
#define TABLES_FORK_H

#include "base/base.h"

void tables_fork_prepare(void);
void tables_fork_child(bool whole);
void tables_fork_done(void);

#endif /* TABLES_FORK_H */
