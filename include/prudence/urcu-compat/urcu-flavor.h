/* SPDX-License-Identifier: MIT */
/* Other name of <urcu/flavor.h>. */
#include <urcu/flavor.h>
