/* SPDX-License-Identifier: MIT */
/* liburcu's workers across fork, called by runtime/fork.c. */
#ifndef URCU_URCU_H
#define URCU_URCU_H

#include "base/base.h"

void urcu_fork_prepare(void);
void urcu_fork_child(bool whole);
void urcu_fork_done(void);

/* The workers of liburcu-cds' tables (urcu_fork.c). resume and revive run without locks held. */
void urcu_fork_tables_prepare(void);
void urcu_fork_tables_child(bool whole);
void urcu_fork_tables_done(void);
void urcu_fork_tables_resume(void);
void urcu_fork_tables_revive(void);

#endif /* URCU_URCU_H */
