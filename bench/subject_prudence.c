/* SPDX-License-Identifier: MIT */
/* Prudence in its library: calls, in the shared one through a table, in the static one straight to their functions. */
#include "prudence_family.h"

PRUDENCE_FAMILY(prudence, NULL, NULL)
PRUDENCE_FAMILY(prudence_replace, replace, NULL)
PRUDENCE_FAMILY(prudence_static, NULL, "prudence-bench-static")
