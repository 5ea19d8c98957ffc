/* SPDX-License-Identifier: MIT */
/*
 * CPUs and NUMA nodes, read once at start from /sys, or injected by a test.
 *
 * The lists may be incomplete. A container may show another list, and a process may be restored on
 * a larger machine. So each number that comes from outside later is compared with the count:
 * sequences compare rseq's (os_percpu.h), the code below getcpu's. A thread on a CPU at or above
 * the count shares the first CPU's caches, which is slow. The count therefore includes all CPUs
 * that this thread may run on, whatever the list in /sys says. Nodes above the known maximum, and
 * CPUs that no node lists, count as node 0.
 */
#define _GNU_SOURCE /* sched_getcpu */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define CPUS_MAX 8192 /* Linux has no more */

unsigned posix_cpu_count READ_MOSTLY = 1;
unsigned posix_node_count READ_MOSTLY = 1;
static uint8_t node_of_cpu[CPUS_MAX] __attribute__((aligned(CACHE_LINE)));
static unsigned (*injected_current)(void) READ_MOSTLY = NULL;
const char *posix_cpus_possible_injected = NULL;

struct cpu_mask {
    unsigned long words[CPUS_MAX / 64];
};

/* Returns the largest CPU of the mask plus 1, or 0 if the mask is empty. */
static unsigned mask_end(const struct cpu_mask *mask)
{
    for (unsigned i = CPUS_MAX / 64; i-- > 0;)
        if (mask->words[i])
            return (i + 1) * 64 - (unsigned)__builtin_clzl(mask->words[i]);
    return 0;
}

/* Calls `visit` for each number of a list like "0-3,8,10-11". Returns the largest number, or -1
 * if there is none. */
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

/* Returns 0 if the list cannot be read or cannot be true. */
static unsigned cpus_listed(void)
{
    char text[4096];
    long largest;

    if (posix_cpus_possible_injected)
        largest = list_visit(posix_cpus_possible_injected, NULL, 0);
    else if (posix_file_read("/sys/devices/system/cpu/possible", text, sizeof text))
        largest = list_visit(text, NULL, 0);
    else
        return 0;
    return largest >= 0 && largest < CPUS_MAX ? (unsigned)largest + 1 : 0;
}

/* The kernel's mask is as long as the kernel may need; sched_getaffinity returns the bytes it
 * wrote. */
COLD static unsigned cpus_possible(void)
{
    struct cpu_mask allowed = {{0}};
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof allowed, &allowed);
    unsigned listed = cpus_listed();

    if (!listed)
        return bytes > 0 ? (unsigned)bytes * 8 : CPUS_MAX;
    return (unsigned)max_size(listed, mask_end(&allowed));
}

static void cpu_is_on_node(unsigned cpu, unsigned node)
{
    node_of_cpu[cpu] = narrow(uint8_t, node);
}

COLD static void nodes_read(void)
{
    char text[4096], path[64];
    long largest = 0;

    if (posix_file_read("/sys/devices/system/node/possible", text, sizeof text))
        largest = list_visit(text, NULL, 0);
    if (largest <= 0)
        return;
    posix_node_count = (unsigned)(largest < POSIX_NODES_MAX ? largest + 1 : POSIX_NODES_MAX);
    for (unsigned node = 0; node < posix_node_count; node++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%u/cpulist", node);
        if (posix_file_read(path, text, sizeof text))
            list_visit(text, cpu_is_on_node, node);
    }
}

COLD void posix_cpu_start(void)
{
    posix_cpu_count = cpus_possible();
    nodes_read();
}

void posix_cpu_inject(unsigned cpus, unsigned nodes, unsigned (*current)(void))
{
    posix_cpu_count = cpus;
    posix_node_count = nodes;
    injected_current = current;
    for (unsigned cpu = 0; cpu < cpus; cpu++)
        node_of_cpu[cpu] = narrow(uint8_t, cpu * nodes / cpus);
}

unsigned os_cpu_count(void)
{
    return posix_cpu_count;
}

unsigned os_cpu_current(void)
{
    int cpu;

    if (unlikely(injected_current))
        return injected_current();
    cpu = sched_getcpu();
    return cpu >= 0 && (unsigned)cpu < posix_cpu_count ? (unsigned)cpu : 0;
}

unsigned os_node_count(void)
{
    return posix_node_count;
}

unsigned os_node_of_cpu(unsigned cpu)
{
    return node_of_cpu[cpu];
}

/* A sequence has some ten instructions. */
#define SPINS 500

void posix_let_sequences_end(void)
{
    for (unsigned spin = 0; spin < SPINS; spin++)
        os_relax();
}

bool posix_visit_cpus(void)
{
    struct cpu_mask saved = {{0}}, one;
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof saved, &saved);
    bool visited = false;

    for (unsigned cpu = 0; (long)cpu < bytes * 8; cpu++) {
        one = (struct cpu_mask){{0}};
        one.words[cpu / 64] = 1ul << cpu % 64;
        if (syscall(SYS_sched_setaffinity, 0, sizeof one, &one) == 0)
            visited = true; /* the call returned running on that CPU */
    }
    return syscall(SYS_sched_setaffinity, 0, sizeof saved, &saved) == 0 && visited;
}
