/* SPDX-License-Identifier: MIT */
/* Objects that wait with a deleter (see hazard_retire.c). */
#ifndef TOOLKIT_DOMAINS_HAZARD_RETIRE_H
#define TOOLKIT_DOMAINS_HAZARD_RETIRE_H

void hazard_retire_fork_prepare(void);
void hazard_retire_fork_done(void);

#endif /* TOOLKIT_DOMAINS_HAZARD_RETIRE_H */
