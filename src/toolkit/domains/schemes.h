/* SPDX-License-Identifier: MIT */
/* All schemes but that of memb and qsbr, and the parts beside the schemes (domain.h). */
#ifndef GP_USER_SCHEMES_H
#define GP_USER_SCHEMES_H

#include "fork_part.h"
#include "gp/user/domain.h"

extern const struct gp_scheme gp_manual, gp_srcu, gp_set, gp_set_with_hazards, gp_external,
    gp_hazard;
extern const struct gp_part gp_external_part, gp_hazard_part, gp_retired_part;

extern const struct fork_part external_fork_part;

#endif /* GP_USER_SCHEMES_H */
