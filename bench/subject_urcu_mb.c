/* SPDX-License-Identifier: MIT */
/* liburcu's flavor whose readers fence. */
#define RCU_MB
#include "urcu_family.h"

const struct family urcu_mb_family = URCU_FAMILY("liburcu-mb", start);
