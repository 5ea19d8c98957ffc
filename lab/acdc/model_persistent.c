/* SPDX-License-Identifier: MIT */
/* Persistent memory: malloc and free of the allocator that is linked or preloaded. */
#include <stdlib.h>

#include "model.h"

static void *allocate(size_t size)
{
    return malloc(size);
}

const struct model model_persistent = {
    .description = "malloc and free",
    .allocate = allocate,
    .free = free,
};
