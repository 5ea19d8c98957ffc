// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* The demo with kfree_rcu, before the switch to Prudence. */
#define DEMO_KFREE_RCU
#include "demo.c"
