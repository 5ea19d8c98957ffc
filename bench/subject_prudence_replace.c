/* SPDX-License-Identifier: MIT */
/* The same, where a pair is one call: a deferred free and an allocation. */
#define FAMILY  prudence_replace_family
#define REPLACE replace
#include "prudence_family.h"
