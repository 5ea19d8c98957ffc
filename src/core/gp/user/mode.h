/* SPDX-License-Identifier: MIT */
/* Fence-free or fenced readers (see mode.c). */
#ifndef GP_USER_MODE_H
#define GP_USER_MODE_H

#include "gp/user/domain.h"

/* Policy: how dear is a membarrier at first? */
#define MEMBARRIER_COST_NS 10000 /* ns; assumed until the first one was measured */

enum reader_mode { READER_MODE_AUTO, READER_MODE_FENCED, READER_MODE_FREE };

extern enum reader_mode gp_reader_mode; /* option, set through process/options.c */

void mode_start(struct prudence_domain *domain);
void mode_choose(struct prudence_domain *domain);
void mode_follow_options(struct prudence_domain *domain);

#endif /* GP_USER_MODE_H */
