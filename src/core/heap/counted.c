/* SPDX-License-Identifier: MIT */
#include "heap/counted.h"

uint64_t sampling_rate READ_MOSTLY = 0;
__thread int64_t sampling_left;
