/* SPDX-License-Identifier: MIT */
/* Prudence by calls: in the shared library through a table, in the static one directly. */
#include "prudence_family.h"

PRUDENCE_FAMILY(prudence, NULL, NULL)
PRUDENCE_FAMILY(prudence_replace, replace, NULL)
PRUDENCE_FAMILY(prudence_static, NULL, "prudence-bench-static")
