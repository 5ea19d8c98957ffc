// SPDX-License-Identifier: MIT
// Whether the program is linked with libprudence-malloc: each test of C++ is, and without it, from one object.
#include "on_malloc.h"

const bool on_malloc = ON_MALLOC;
