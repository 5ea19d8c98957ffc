/* SPDX-License-Identifier: MIT */
/* Says that this copy of the library is bound to itself (runtime/process.c, is_superseded). */
#include "process.h"

const char process_is_malloc[] = "libprudence-malloc";
