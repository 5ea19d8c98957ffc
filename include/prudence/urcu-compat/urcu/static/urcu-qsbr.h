/* SPDX-License-Identifier: MIT */
/* All of it is inline. */
#include <urcu/urcu-qsbr.h>
