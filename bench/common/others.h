/* SPDX-License-Identifier: MIT */
/* Whether other programs used the machine while one measured: CPU time of the whole machine, less that of this process and of its
 * children that it waited for. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

#include <stdint.h>

struct others {
    uint64_t when_ns, machine_ns, own_ns;
};

void others_begin(struct others *others);

/* How many CPUs others kept busy since then, on average; 0 where the system does not say. A virtual machine that waited for a CPU of
 * its host counts as busy. Says on standard error when it is too much for figures to count. */
double others_report(const struct others *others, const char *program);
double others_between(const struct others *begun, const struct others *ended);

/* The busy ticks (user, nice, system, irq, softirq, steal) in the first line of /proc/stat; 0: it is no such line. */
uint64_t busy_ticks(const char *line);

#endif /* BENCH_OTHERS_H */
