/* SPDX-License-Identifier: MIT */
/* Prudence as libprudence.a, in a program of its own: calls go straight to their functions. */
#define FAMILY  prudence_static_family
#define REPLACE NULL
#define PROGRAM "prudence-bench-static"
#include "prudence_family.h"
