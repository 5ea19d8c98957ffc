/* SPDX-License-Identifier: MIT */
/* The flavour that RCU_MEMBARRIER, RCU_SIGNAL or RCU_MB names; membarrier if none does. */
#if !defined(RCU_MEMBARRIER) && !defined(RCU_SIGNAL) && !defined(RCU_MB)
#define RCU_MEMBARRIER
#endif

#if defined(RCU_MEMBARRIER)
#include <urcu/urcu-memb.h>
#elif defined(RCU_SIGNAL)
#include <urcu/urcu-signal.h>
#else
#include <urcu/urcu-mb.h>
#endif
