/* SPDX-License-Identifier: MIT */
/* struct urcu_gp_poll_state; the functions are those of a flavour. */
#include <urcu/flavor.h>
