/* SPDX-License-Identifier: MIT */
/* liburcu's flavor whose readers fence. */
#define RCU_MB
#include "urcu_family.h"

URCU_FAMILY(urcu_mb, "liburcu-mb", start)
