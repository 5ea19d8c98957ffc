/* SPDX-License-Identifier: MIT */
/* As <urcu/urcu-poll.h>. */
#include <urcu/urcu-poll.h>
