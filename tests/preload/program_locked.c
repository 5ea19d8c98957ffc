/* SPDX-License-Identifier: MIT */
/*
 * A program that locks its memory: locked FLAGS LIMIT BEFORE BYTES. Allocates BEFORE bytes in small
 * blocks, calls mlockall(FLAGS) under a limit of LIMIT bytes (0: none) that applies to any user,
 * and then allocates BYTES more. Writes the bytes allocated after mlockall(), the peak of resident
 * memory, and the size of the address space, both in KiB.
 */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets the limit, and drops CAP_IPC_LOCK, which would lift it. */
static int obey(unsigned long limit)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2];
    struct rlimit locked = {.rlim_cur = limit, .rlim_max = limit};

    memset(none, 0, sizeof none);
    return setrlimit(RLIMIT_MEMLOCK, &locked) || syscall(SYS_capset, &header, none);
}

/* Allocates and writes small blocks. Returns the number of bytes. */
static unsigned long allocate(unsigned long bytes)
{
    unsigned long got = 0;

    while (got < bytes) {
        size_t size = 16 + got % 1000;
        char *block = malloc(size);

        if (!block)
            break;
        memset(block, 1, size);
        got += size;
    }
    return got;
}

static unsigned long figure(const char *name)
{
    static char text[4096];
    FILE *file = fopen("/proc/self/status", "r");
    char *line;

    if (!file)
        return 0;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    line = strstr(text, name);
    return line ? strtoul(line + strlen(name), NULL, 10) : 0;
}

int main(int count, char **arguments)
{
    unsigned long limit, got;

    if (count != 5)
        return 2;
    limit = strtoul(arguments[2], NULL, 10);
    if (limit && obey(limit))
        return 77;
    if (allocate(strtoul(arguments[3], NULL, 10)) < strtoul(arguments[3], NULL, 10))
        return 3;
    if (mlockall(atoi(arguments[1]))) {
        perror("mlockall");
        return 4;
    }
    got = allocate(strtoul(arguments[4], NULL, 10));
    printf("%lu %lu %lu\n", got, figure("\nVmHWM:"), figure("\nVmSize:"));
    return 0;
}
