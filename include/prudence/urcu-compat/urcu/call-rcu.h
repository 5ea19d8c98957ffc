/* SPDX-License-Identifier: MIT */
/*
 * Has struct rcu_head and the flags of workers; each flavour has the functions. Also includes
 * liburcu's headers that programs take for granted.
 */
#ifndef PRUDENCE_URCU_COMPAT_CALL_RCU_H
#define PRUDENCE_URCU_COMPAT_CALL_RCU_H

#include <assert.h>
#include <stdlib.h>

#if defined(__has_include)
#if __has_include(<urcu/wfcqueue.h>)
#include <urcu/wfcqueue.h>
#endif
#endif

#include <urcu/flavor.h>

#endif /* PRUDENCE_URCU_COMPAT_CALL_RCU_H */
