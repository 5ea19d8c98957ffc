/* SPDX-License-Identifier: MIT */
/* Deferred calls are functions of a flavour. */
#include <urcu/flavor.h>
