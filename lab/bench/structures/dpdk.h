/* SPDX-License-Identifier: MIT */
/* DPDK's environment, without devices and huge pages; once in a process. */
#ifndef BENCH_STRUCTURES_DPDK_H
#define BENCH_STRUCTURES_DPDK_H

#include <rte_eal.h>

#include <stdlib.h>

static void dpdk_start(void)
{
    static char *arguments[] = {"prudence-structures", "--no-huge", "--no-pci", "--no-telemetry",
                                "--no-shconf",         "-m",        "2048",     "--lcores=0",
                                "--log-level",         "error",     NULL};

    if (rte_eal_init((int)(sizeof arguments / sizeof arguments[0]) - 1, arguments) < 0)
        abort();
}

#endif /* BENCH_STRUCTURES_DPDK_H */
