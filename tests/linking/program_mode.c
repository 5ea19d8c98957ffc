/* SPDX-License-Identifier: MIT */
/* Says which fast paths the library has in this program, or why not (test_linkers.py). */
#include <stdio.h>
#include <string.h>

#ifdef TWO_FILES
#include "prudence.h"
#else
#include <prudence/call.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/stats.h>
#endif

int main(void)
{
    struct prudence_stats stats;

    prudence_free(prudence_malloc(1));
    prudence_read_lock();
    prudence_read_unlock();
    prudence_free_deferred(prudence_malloc(1));
    prudence_barrier();
    if (prudence_stats(&stats))
        return 1;
    printf("percpu=%s (%s) membarrier=%s\n", stats.percpu, stats.percpu_reason, stats.membarrier);
    return 0;
}
