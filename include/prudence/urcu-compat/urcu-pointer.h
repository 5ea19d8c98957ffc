/* SPDX-License-Identifier: MIT */
/* As <urcu/pointer.h>. */
#include <urcu/pointer.h>
