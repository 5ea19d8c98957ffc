/* SPDX-License-Identifier: MIT */
/* Fast paths inlined into the loops: one call, which defers and allocates. */
#include <prudence/inline.h>

#define FAMILY  prudence_replace_inline_family
#define REPLACE replace
#include "prudence_family.h"
