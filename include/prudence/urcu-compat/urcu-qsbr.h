/* SPDX-License-Identifier: MIT */
/* <urcu/urcu-qsbr.h>, with names without a flavour. */
#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu-qsbr.h>
