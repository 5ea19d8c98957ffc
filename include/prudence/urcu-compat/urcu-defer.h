/* SPDX-License-Identifier: MIT */
/* As <urcu/defer.h>. */
#include <urcu/defer.h>
