/* SPDX-License-Identifier: MIT */
/* The memory of this process, as the system counts it. */
#ifndef TESTS_SUPPORT_PROCESS_MEMORY_H
#define TESTS_SUPPORT_PROCESS_MEMORY_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns the bytes of the address space, VmSize. */
static inline size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    if (!file || fscanf(file, "%zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the number of mappings. */
static inline unsigned mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned lines = 0;
    int byte;

    if (!maps)
        abort();
    while ((byte = getc(maps)) != EOF)
        lines += byte == '\n';
    fclose(maps);
    return lines;
}

#endif /* TESTS_SUPPORT_PROCESS_MEMORY_H */
