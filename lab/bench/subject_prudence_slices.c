/* SPDX-License-Identifier: MIT */
/* Prudence whose readers ask for longer time slices (docs/adr/0034). */
#define _GNU_SOURCE
#define PRUDENCE_READER_SLICES
#include "prudence_family.h"

PRUDENCE_FAMILY(slices_asked, NULL, NULL)
