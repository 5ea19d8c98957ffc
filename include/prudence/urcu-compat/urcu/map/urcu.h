/* SPDX-License-Identifier: MIT */
/* Maps names without a flavour to the flavour of <urcu/urcu.h>. */
#if defined(RCU_SIGNAL)
#include <urcu/map/urcu-signal.h>
#elif defined(RCU_MB)
#include <urcu/map/urcu-mb.h>
#else
#include <urcu/map/urcu-memb.h>
#endif
