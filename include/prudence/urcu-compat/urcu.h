/* SPDX-License-Identifier: MIT */
/* <urcu/urcu.h>, with names without a flavour. */
#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu.h>
