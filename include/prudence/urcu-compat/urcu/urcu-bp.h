/* SPDX-License-Identifier: MIT */
/* The flavour whose threads register themselves: the default domain, where all do. */
#ifndef PRUDENCE_URCU_COMPAT_BP_H
#define PRUDENCE_URCU_COMPAT_BP_H

#define PRUDENCE_URCU(name)  urcu_bp_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_BP_H */

/* Outside the guard: the names without a flavour may be asked for by a second include. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-bp.h>
#endif
