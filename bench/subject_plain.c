/* SPDX-License-Identifier: MIT */
/* malloc and free: the floor. */
#include <stdlib.h>

#define PLAIN_MALLOC malloc
#define PLAIN_FREE   free
#include "plain_family.h"

const struct family plain_family = {
    .library = "malloc",
    .version = "",
    .operations = &operations,
    .loops = SUBJECT_LOOP_TABLE,
};
