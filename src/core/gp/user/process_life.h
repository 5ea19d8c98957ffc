/* SPDX-License-Identifier: MIT */
/* Start, options, fork and end (see process_life.c). */
#ifndef GP_USER_PROCESS_LIFE_H
#define GP_USER_PROCESS_LIFE_H

#include "gp/user/domain.h"

/* Called by process/process.c and process/fork.c. */
void gp_start(void);
void gp_follow_options(void);
void gp_process_ends(void);
void gp_fork_prepare(void);
void gp_fork_child(bool whole); /* forgets the state of threads that the child does not have */
void gp_fork_done(void);

#endif /* GP_USER_PROCESS_LIFE_H */
