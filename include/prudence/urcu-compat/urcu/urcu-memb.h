/* SPDX-License-Identifier: MIT */
/* The flavour that uses membarrier, which is the default domain. */
#ifndef PRUDENCE_URCU_COMPAT_MEMB_H
#define PRUDENCE_URCU_COMPAT_MEMB_H

#define PRUDENCE_URCU(name)  urcu_memb_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_MEMB_H */

/* Outside the guard, because a second include may ask for the names without a flavour. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-memb.h>
#endif
