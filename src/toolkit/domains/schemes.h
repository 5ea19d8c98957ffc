/* SPDX-License-Identifier: MIT */
/* The schemes of these kinds of domains, and the other parts (domain.h). */
#ifndef TOOLKIT_DOMAINS_SCHEMES_H
#define TOOLKIT_DOMAINS_SCHEMES_H

#include "fork_part.h"
#include "gp/user/domain.h"

extern const struct gp_scheme gp_srcu, gp_set, gp_set_with_hazards, gp_external, gp_hazard;
extern const struct gp_part gp_external_part, gp_hazard_part, gp_retired_part;

extern const struct fork_part external_fork_part;

#endif /* TOOLKIT_DOMAINS_SCHEMES_H */
