/* SPDX-License-Identifier: MIT */
/* The flavour that uses signals. Here this is the default domain, which needs none. */
#ifndef PRUDENCE_URCU_COMPAT_SIGNAL_H
#define PRUDENCE_URCU_COMPAT_SIGNAL_H

#define PRUDENCE_URCU(name)  urcu_signal_##name
#define PRUDENCE_URCU_DOMAIN NULL
#define PRUDENCE_URCU_QSBR   0
#include <urcu/prudence-flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_SIGNAL_H */

/* Outside the guard, because a second include may ask for the names without a flavour. */
#ifdef URCU_API_MAP
#include <urcu/map/urcu-signal.h>
#endif
