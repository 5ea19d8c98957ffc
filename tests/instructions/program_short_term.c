/* SPDX-License-Identifier: MIT */
/* Refreshes and ticks, so many of them, to be counted by test_short_term.py. Nothing expires. */
#include <stdlib.h>

#include <prudence/prudence.h>
#include <prudence/scm.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, dates = argc > 2 ? atoi(argv[2]) : 1;
    void **objects = calloc((size_t)count, sizeof *objects);

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
