/* SPDX-License-Identifier: MIT */
/*
 * The flavour whose threads register themselves. This is the default domain, where all threads do.
 */
#ifndef PRUDENCE_URCU_COMPAT_BP_H
#define PRUDENCE_URCU_COMPAT_BP_H

#define PRUDENCE_URCU(name)  urcu_bp_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

/* Only this flavour has separate names for these. */
#define urcu_bp_dereference     rcu_dereference
#define urcu_bp_set_pointer     rcu_set_pointer
#define urcu_bp_xchg_pointer    rcu_xchg_pointer
#define urcu_bp_cmpxchg_pointer rcu_cmpxchg_pointer

#endif /* PRUDENCE_URCU_COMPAT_BP_H */

/* Outside the guard, because a second include may ask for the names without a flavour. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-bp.h>
#endif
