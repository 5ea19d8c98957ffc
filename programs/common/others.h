/* SPDX-License-Identifier: MIT */
/* Detects other programs that used the machine during a measurement: CPU time of the whole
 * machine, less the time of this process and of its children that it waited for. */
#ifndef BENCH_OTHERS_H
#define BENCH_OTHERS_H

#include <stdint.h>

struct others {
    uint64_t when_ns, machine_ns, own_ns;
};

void others_begin(struct others *others);

/* Return how many CPUs other programs kept busy since then, on average; 0 if the system does not
 * report it. A virtual machine that waited for a CPU of the host counts as busy. others_report()
 * warns on standard error if that makes the figures useless. */
double others_report(const struct others *others, const char *program);
double others_between(const struct others *begun, const struct others *ended);

/* Returns the busy ticks (user, nice, system, irq, softirq, steal) in the first line of
 * /proc/stat, or 0 if it is another line. */
uint64_t busy_ticks(const char *line);

#endif /* BENCH_OTHERS_H */
