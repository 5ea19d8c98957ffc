/* SPDX-License-Identifier: MIT */
/* Says which fast paths the library has in this program, or why not (test_linkers.py). */
#include <stdio.h>
#include <string.h>

#ifdef TWO_FILES
#include "prudence.h"
#else
#include <prudence/prudence.h>
#include <prudence/stats.h>
#endif

int main(void)
{
    struct prudence_stats stats;

    prudence_free(prudence_malloc(1));
    if (prudence_stats(&stats))
        return 1;
    printf("percpu=%s (%s) membarrier=%s\n", stats.percpu, stats.percpu_reason, stats.membarrier);
    return 0;
}
