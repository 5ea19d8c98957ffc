/* SPDX-License-Identifier: MIT */
/* Readers that stay too long (see stall.c). */
#ifndef GP_USER_STALL_H
#define GP_USER_STALL_H

#include "gp/user/domain.h"

/* Options, set through process/options.c. */
extern uint64_t gp_stall_timeout; /* ns; 0: never report */
/* report with the reader's trace, once gp_stall_trace_prime() was called */
extern bool gp_stall_trace;
void gp_stall_trace_prime(void); /* may allocate */

#define STALL_TRACE_PATIENCE_NS 20000000 /* for a reader's trace: the asking thread may allocate */
void stall_note(struct prudence_domain *domain, struct reader_slot *slot, uint64_t word);
/* Reports a section, or a hazard pointer that names `object`, after `stayed` ns. `thread`: 0 if not
 * known. The caller holds no lock, and calls once for each. */
void stall_report(struct prudence_domain *domain, int thread, const void *object, uint64_t stayed);
/* ns; when the section was first found blocking */
uint64_t stall_since(const struct reader_slot *slot);
void stall_fork_prepare(void);
void stall_fork_done(void);

#endif /* GP_USER_STALL_H */
