/* SPDX-License-Identifier: MIT */
#define URCU_IS_QSBR
#define URCU_HEADER <urcu-qsbr.h>
#define URCU_NAME   "urcu-qsbr"
#define URCU_SYMBOL variant_urcu_qsbr
#define URCU_ORIGIN "liburcu, flavor qsbr"
#include "urcu_template.h"
