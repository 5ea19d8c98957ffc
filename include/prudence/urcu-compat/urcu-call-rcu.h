/* SPDX-License-Identifier: MIT */
/* Other name of <urcu/call-rcu.h>. */
#include <urcu/call-rcu.h>
