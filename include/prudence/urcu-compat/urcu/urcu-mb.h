/* SPDX-License-Identifier: MIT */
/*
 * The flavour whose readers fence. Here this is the default domain, whose readers fence when that
 * is cheaper.
 */
#ifndef PRUDENCE_URCU_COMPAT_MB_H
#define PRUDENCE_URCU_COMPAT_MB_H

#define PRUDENCE_URCU(name)  urcu_mb_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_MB_H */

/* Outside the guard, because a second include may ask for the names without a flavour. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-mb.h>
#endif
