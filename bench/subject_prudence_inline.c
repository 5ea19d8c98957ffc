/* SPDX-License-Identifier: MIT */
/* Fast paths inlined into the loops: an allocation and a deferred free. */
#include <prudence/inline.h>

#define FAMILY  prudence_inline_family
#define REPLACE NULL
#include "prudence_family.h"
