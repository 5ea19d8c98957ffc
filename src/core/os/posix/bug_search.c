/* SPDX-License-Identifier: MIT */
#include "os/os.h"

#include "bug_search.h"

bool check_wanted READ_MOSTLY = false;
bool hardened_wanted;
bool annotate_on READ_MOSTLY = false;
