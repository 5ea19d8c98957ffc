/* SPDX-License-Identifier: MIT */
/* The flavour whose readers fence: here the default domain, which does where that is cheaper. */
#ifndef PRUDENCE_URCU_COMPAT_MB_H
#define PRUDENCE_URCU_COMPAT_MB_H

#define PRUDENCE_URCU(name)  urcu_mb_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_MB_H */

/* Outside the guard: the names without a flavour may be asked for by a second include. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-mb.h>
#endif
