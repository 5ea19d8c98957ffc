/* SPDX-License-Identifier: MIT */
/* Other name of <urcu/defer.h>. */
#include <urcu/defer.h>
