/* SPDX-License-Identifier: MIT */
#include "draws.h"

#include <stdlib.h>

#include "zipf.h"

struct draws draws_make(uint64_t bound, uint64_t seed)
{
    struct draws draws = {.ranks = malloc(DRAWS * sizeof(uint32_t))};
    struct zipf zipf;

    if (!draws.ranks)
        abort();
    zipf_init(&zipf, bound, DRAWS_SKEW);
    for (uint64_t i = 0; i < DRAWS; i++)
        draws.ranks[i] = (uint32_t)zipf_draw(&zipf, &seed);
    return draws;
}
