/* SPDX-License-Identifier: MIT */
/* The flavour whose threads announce quiescent states, in a separate qsbr domain. */
#ifndef PRUDENCE_URCU_COMPAT_QSBR_H
#define PRUDENCE_URCU_COMPAT_QSBR_H

#define PRUDENCE_URCU(name)  urcu_qsbr_##name
#define PRUDENCE_URCU_DOMAIN prudence_urcu_qsbr_known()
#define PRUDENCE_URCU_QSBR   1
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_QSBR_H */

/* Outside the guard, because a second include may ask for the names without a flavour. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-qsbr.h>
#endif
