/* SPDX-License-Identifier: MIT */
/* Has struct urcu_gp_poll_state; each flavour has the functions. */
#include <urcu/flavor.h>
