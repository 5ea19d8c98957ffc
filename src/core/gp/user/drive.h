/* SPDX-License-Identifier: MIT */
/* Grace periods of any scheme (see drive.c). */
#ifndef GP_USER_DRIVE_H
#define GP_USER_DRIVE_H

#include "gp/user/domain.h"

/* Informs a race detector, after a poll or wait that found the grace period over, that the readers'
 * accesses in their sections are before the caller's next ones. Has no other effect. */
void gp_drive_tell_over(const struct prudence_domain *domain);

/* like prudence_tell_section_ends */
void gp_drive_tell_section_ends(const struct prudence_domain *domain);
struct reader_slot *gp_drive_held_up_by(const struct prudence_domain *domain);
/* Returns the difference; 0 if already there. */
uint64_t gp_drive_raise(uint64_t *value, uint64_t to);
void gp_drive_complete(struct prudence_domain *domain, uint64_t upto);
void gp_drive_count(uint64_t ended);
/* Returns whether the readers are fenced now, so that grace periods cost no system call. */
bool gp_drive_is_cheap(const struct prudence_domain *domain);
void gp_drive_note_cost(struct prudence_domain *domain, uint64_t membarrier);
void gp_drive_urge(struct prudence_domain *domain); /* for explicit waits; see gp_scheme */
bool gp_drive_for_caller(struct prudence_domain *domain);
bool gp_drive_sees_readers(const struct prudence_domain *domain);

#endif /* GP_USER_DRIVE_H */
