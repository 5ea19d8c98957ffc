/* SPDX-License-Identifier: MIT */
/* As <urcu/flavor.h>. */
#include <urcu/flavor.h>
