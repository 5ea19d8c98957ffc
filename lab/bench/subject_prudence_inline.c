/* SPDX-License-Identifier: MIT */
/* Prudence with its fast paths inlined into the loops. */
#include <prudence/inline.h>

#include "prudence_family.h"

PRUDENCE_FAMILY(prudence_inline, NULL, NULL)
PRUDENCE_FAMILY(prudence_replace_inline, replace, NULL)
