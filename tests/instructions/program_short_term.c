/* SPDX-License-Identifier: MIT */
/* Refreshes objects and ticks; test_short_term.py counts the instructions. Nothing expires. With 0
 * dates the program allocates in a region instead, and with -1 it frees each object by hand and
 * allocates it again before its date. */
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/scm.h>

static int fill_region(int count)
{
    struct scm_region *region = scm_region_create();

    for (int i = 0; i < count; i++)
        if (!scm_region_alloc(region, 64))
            return 1;
    return 0;
}

static int free_by_hand(int count)
{
    for (int i = 0; i < count; i++) {
        prudence_free(prudence_malloc(64));
        if (scm_refresh(prudence_malloc(64), 4000))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, dates = argc > 2 ? atoi(argv[2]) : 1;
    void **objects = calloc((size_t)count, sizeof *objects);

    if (!dates)
        return fill_region(count);
    if (dates < 0)
        return free_by_hand(count);
    for (int i = 0; i < count; i++)
        objects[i] = prudence_malloc(64);
    for (int date = 0; date < dates; date++)
        for (int i = 0; i < count; i++)
            if (scm_refresh(objects[i], 4000 + (unsigned)date))
                return 1;
    for (int i = 0; i < count; i++)
        if (i < 3000 && scm_tick())
            return 1;
    return 0;
}
