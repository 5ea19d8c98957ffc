/* SPDX-License-Identifier: MIT */
/* A static program for test_nested_calls.py whose own functions replace libc's and allocate. Prints
 * "ok". */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int inside, calls;
static char *kept;

static void allocate(void)
{
    if (inside)
        return;
    inside = 1;
    calls = calls + 1;
    kept = realloc(kept, 100 * (size_t)calls);
    free(memset(malloc(5000), 1, 5000));
    if (!kept)
        abort();
    inside = 0;
}

pid_t getpid(void)
{
    allocate();
    return (pid_t)syscall(SYS_getpid);
}

char *secure_getenv(const char *name)
{
    allocate();
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): there are no threads */
}

int main(void)
{
    if (calls < 2)
        return 1;
    free(kept);
    puts("ok");
    return 0;
}
