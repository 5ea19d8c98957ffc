/* SPDX-License-Identifier: MIT */
/*
 * CPUs and NUMA nodes, read once at start from /sys, or injected by a test.
 *
 * The number of CPUs must bound every cpu_id that rseq can ever give, also of CPUs plugged in
 * later: the kernel's own mask size does (sched_getaffinity returns it), and the possible list in
 * /sys is tighter where it can be read.
 */
#define _GNU_SOURCE /* sched_getcpu, CPU_SET */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define CPUS_MAX 4096

static unsigned cpu_count READ_MOSTLY = 1;
static unsigned node_count READ_MOSTLY = 1;
static uint8_t node_of_cpu[CPUS_MAX] READ_MOSTLY = {0};
static unsigned (*injected_current)(void) READ_MOSTLY = NULL;

/* Calls `visit` for each number of a list like "0-3,8,10-11"; returns the largest, -1 for none. */
static long list_visit(const char *text, void (*visit)(unsigned number, unsigned argument),
                       unsigned argument)
{
    long largest = -1;

    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

        for (long n = first; visit && n <= last && n < CPUS_MAX; n++)
            visit((unsigned)n, argument);
        largest = last > largest ? last : largest;
        text = *end == ',' ? end + 1 : end;
    }
    return largest;
}

static unsigned cpus_possible(void)
{
    unsigned long mask[CPUS_MAX / 64];
    char text[4096];
    long bytes, largest;

    if (posix_file_read("/sys/devices/system/cpu/possible", text, sizeof text)) {
        largest = list_visit(text, NULL, 0);
        if (largest >= 0 && largest < CPUS_MAX)
            return (unsigned)largest + 1;
    }
    bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    return bytes > 0 ? (unsigned)bytes * 8 : CPUS_MAX;
}

static void cpu_is_on_node(unsigned cpu, unsigned node)
{
    node_of_cpu[cpu] = (uint8_t)node;
}

static void nodes_read(void)
{
    char text[4096], path[64];
    long largest = 0;

    if (posix_file_read("/sys/devices/system/node/possible", text, sizeof text))
        largest = list_visit(text, NULL, 0);
    if (largest <= 0)
        return;
    node_count = (unsigned)(largest < POSIX_NODES_MAX ? largest + 1 : POSIX_NODES_MAX);
    for (unsigned node = 0; node < node_count; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
        if (posix_file_read(path, text, sizeof text))
            list_visit(text, cpu_is_on_node, node);
    }
}

void posix_cpu_start(void)
{
    cpu_count = cpus_possible();
    nodes_read();
}

void posix_cpu_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void))
{
    cpu_count = cpus;
    node_count = nodes;
    injected_current = current;
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        node_of_cpu[cpu] = (uint8_t)(cpu * nodes / cpus);
}

unsigned os_cpu_count(void)
{
    return cpu_count;
}

unsigned os_cpu_current(void)
{
    int cpu;

    if (unlikely(injected_current))
        return injected_current();
    cpu = sched_getcpu();
    return cpu >= 0 && (unsigned)cpu < cpu_count ? (unsigned)cpu : 0;
}

unsigned os_node_count(void)
{
    return node_count;
}

unsigned os_node_of_cpu(unsigned cpu)
{
    return node_of_cpu[cpu];
}

bool posix_visit_cpus(unsigned first, unsigned count)
{
    cpu_set_t saved, one;
    bool visited = false;

    if (sched_getaffinity(0, sizeof saved, &saved))
        return false;
    for (unsigned cpu = first; cpu < first + count && cpu < CPU_SETSIZE; cpu++) {
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        if (sched_setaffinity(0, sizeof one, &one) == 0) /* returns running on that CPU */
            visited = true;
    }
    return sched_setaffinity(0, sizeof saved, &saved) == 0 && visited;
}
