/* SPDX-License-Identifier: MIT */
#include "scm/settings.h"

uint32_t scm_max_extension = 4095;
bool scm_eager, scm_deferred;
