/* SPDX-License-Identifier: MIT */
/* Maps names without a flavour to bp from here on. */
#undef PRUDENCE_URCU_API
#define PRUDENCE_URCU_API(name) urcu_bp_##name
#include <urcu/prudence-map.h>
