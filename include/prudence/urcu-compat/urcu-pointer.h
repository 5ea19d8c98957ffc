/* SPDX-License-Identifier: MIT */
/* Other name of <urcu/pointer.h>. */
#include <urcu/pointer.h>
