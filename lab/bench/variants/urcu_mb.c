/* SPDX-License-Identifier: MIT */
#define RCU_MB
#define URCU_HEADER <urcu.h>
#define URCU_NAME   "urcu-mb"
#define URCU_SYMBOL variant_urcu_mb
#define URCU_ORIGIN "liburcu, flavor mb (readers fence)"
#include "urcu_template.h"
