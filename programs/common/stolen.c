/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "stolen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEAL 7 /* its place: user nice system idle iowait irq softirq steal; guests are in user */

bool stolen_parse(struct stolen *ticks, const char *line)
{
    uint64_t value[STEAL + 1];

    *ticks = (struct stolen){0};
    if (strncmp(line, "cpu ", 4) != 0) /* sscanf takes "cpu0 1" for "cpu 0 1" */
        return false;
    if (sscanf(line,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &value[0], &value[1], &value[2], &value[3], &value[4], &value[5], &value[6],
               &value[STEAL]) != STEAL + 1)
        return false;
    for (unsigned i = 0; i <= STEAL; i++)
        ticks->all += value[i];
    ticks->stolen = value[STEAL];
    return true;
}

/* Reads line `number`, from 0, or the last one of a shorter file. */
static void read_line(const char *path, unsigned number, char *line, int size)
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    for (unsigned i = 0; file && i <= number && fgets(line, size, file); i++)
        ;
    if (file)
        fclose(file);
}

bool stolen_now(struct stolen *now)
{
    static unsigned calls;
    const char *injected = getenv("PRUDENCE_BENCH_STAT");
    char line[256];

    read_line(injected ? injected : "/proc/stat", injected ? calls++ : 0, line, sizeof line);
    return stolen_parse(now, line);
}

double stolen_between(const struct stolen *begun, const struct stolen *ended)
{
    if (!begun->all || ended->all <= begun->all || ended->stolen <= begun->stolen)
        return 0;
    return (double)(ended->stolen - begun->stolen) / (double)(ended->all - begun->all);
}
