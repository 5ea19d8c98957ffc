/* SPDX-License-Identifier: MIT */
/* struct rcu_head, and the flags of workers; the functions are those of a flavour. */
#include <urcu/flavor.h>
