/* SPDX-License-Identifier: MIT */
/* Says that this copy of the library is bound to itself (heap/process.c, is_superseded). */
#include "heap/heap.h"

const char process_is_malloc[] = "libprudence-malloc";
