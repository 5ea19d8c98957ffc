/* SPDX-License-Identifier: MIT */
#define RCU_MEMBARRIER
#define URCU_HEADER <urcu.h>
#define URCU_NAME   "urcu-memb"
#define URCU_SYMBOL variant_urcu_memb
#define URCU_ORIGIN "liburcu, flavor memb (sys_membarrier)"
#include "urcu_template.h"
