/* SPDX-License-Identifier: MIT */
/* Prudence in its shared library: an allocation and a deferred free are a call each. */
#define FAMILY  prudence_family
#define REPLACE NULL
#include "prudence_family.h"
