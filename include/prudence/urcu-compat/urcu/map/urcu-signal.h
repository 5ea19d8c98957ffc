/* SPDX-License-Identifier: MIT */
/* Names without a flavour are from now on those of signal. */
#undef PRUDENCE_URCU_API
#define PRUDENCE_URCU_API(name) urcu_signal_##name
#include <urcu/prudence-map.h>
