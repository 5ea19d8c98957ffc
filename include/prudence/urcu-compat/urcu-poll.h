/* SPDX-License-Identifier: MIT */
/* Other name of <urcu/urcu-poll.h>. */
#include <urcu/urcu-poll.h>
