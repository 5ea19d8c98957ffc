/* SPDX-License-Identifier: MIT */
/*
 * A program for profilers (test_profilers.py): keeps() allocates KEPT blocks of BLOCK bytes, which
 * stay until the end.
 */
#include <stdlib.h>

enum { KEPT = 64, BLOCK = 16384, PAGE = 4096 };

static char *volatile kept[KEPT];

static __attribute__((noinline)) void keeps(void)
{
    for (int i = 0; i < KEPT; i++) {
        volatile char *block = kept[i] = malloc(BLOCK);

        for (int k = 0; block && k < BLOCK; k += PAGE)
            block[k] = 1;
    }
}

int main(void)
{
    keeps();
    return 0;
}
