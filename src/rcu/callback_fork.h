/* SPDX-License-Identifier: MIT */
/* Callbacks and fork (see callback_fork.c). */
#ifndef RCU_CALLBACK_FORK_H
#define RCU_CALLBACK_FORK_H

#include "base/base.h"

void callback_fork_prepare(void);
void callback_fork_child(bool whole); /* before callback_fork_done */
void callback_fork_done(void);

#endif /* RCU_CALLBACK_FORK_H */
