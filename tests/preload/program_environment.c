/* SPDX-License-Identifier: MIT */
/* Prints the option limit, which is 0 unless PRUDENCE_OPTIONS was read. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <prudence/stats.h>

int main(void)
{
    struct prudence_stats stats;

    free(malloc(1));
    prudence_stats(&stats);
    printf("secure %lu limit %llu\n", getauxval(AT_SECURE), (unsigned long long)stats.limit);
    return 0;
}
