/* SPDX-License-Identifier: MIT */
/* As <urcu/call-rcu.h>. */
#include <urcu/call-rcu.h>
