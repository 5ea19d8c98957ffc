/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "others.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

#define TOO_BUSY 0.1 /* CPUs; above this, figures only show the order of magnitude */

uint64_t busy_ticks(const char *line)
{
    uint64_t user, nice, system, idle, waiting, irq, softirq, steal;

    if (strncmp(line, "cpu ", 4) != 0) /* sscanf takes "cpu0 1" for "cpu 0 1" */
        return 0;
    if (sscanf(line,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &waiting, &irq, &softirq, &steal) != 8)
        return 0;
    return user + nice + system + irq + softirq + steal;
}

static uint64_t machine_ns(void)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256] = "";

    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    return busy_ticks(line) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

void others_begin(struct others *others)
{
    others->when_ns = now_ns();
    others->machine_ns = machine_ns();
    others->own_ns = process_cpu_ns() + children_cpu_ns();
}

double others_between(const struct others *begun, const struct others *ended)
{
    const double busy =
        (double)(ended->machine_ns - begun->machine_ns) - (double)(ended->own_ns - begun->own_ns);

    return busy > 0 ? busy / (double)(ended->when_ns - begun->when_ns) : 0;
}

double others_report(const struct others *others, const char *program)
{
    struct others now;
    double busy;

    others_begin(&now);
    busy = others_between(others, &now);
    if (busy > TOO_BUSY)
        fprintf(
            stderr,
            "%s: the machine was busy: others used %.2f CPUs during it; measure again when it is "
            "quiet\n",
            program, busy);
    return busy;
}
