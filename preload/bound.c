/* SPDX-License-Identifier: MIT */
/* Marks this copy of the library as bound to itself (process/process.c, is_superseded). */
#include "process.h"

const char process_is_malloc[] = "libprudence-malloc";
