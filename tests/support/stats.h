/* SPDX-License-Identifier: MIT */
/* Statistics of the whole process, as a value. */
#ifndef TESTS_SUPPORT_STATS_H
#define TESTS_SUPPORT_STATS_H

#include <prudence/stats.h>

static inline struct prudence_stats stats_now(void)
{
    struct prudence_stats stats;

    prudence_stats(&stats);
    return stats;
}

#endif /* TESTS_SUPPORT_STATS_H */
