// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* prudence_demo.ko before it switched over. */
#define DEMO_KFREE_RCU
#include "demo.c"
