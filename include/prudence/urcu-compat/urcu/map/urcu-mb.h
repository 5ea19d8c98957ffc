/* SPDX-License-Identifier: MIT */
/* Names without a flavour are from now on those of mb. */
#undef PRUDENCE_URCU_API
#define PRUDENCE_URCU_API(name) urcu_mb_##name
#include <urcu/prudence-map.h>
