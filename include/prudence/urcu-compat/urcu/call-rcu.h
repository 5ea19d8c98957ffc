/* SPDX-License-Identifier: MIT */
/*
 * struct rcu_head, and the flags of workers; the functions are those of a flavour. Programs take for granted
 * what liburcu's header includes: so does this one.
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
