/* SPDX-License-Identifier: MIT */
/* What the programs of neighbours.toml begin with. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Lets others run for a while. No answer depends on how long that is. */
static inline void let_others_run(void)
{
    for (int i = 0; i < 1000; i++)
        sched_yield();
}

static inline void wait_until(atomic_int *flag)
{
    while (!*flag)
        sched_yield();
}

static inline pthread_t begin(void *(*work)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, work, NULL))
        abort();
    return thread;
}

static inline void run_in_a_thread(void *(*work)(void *))
{
    pthread_join(begin(work), NULL);
}

/* Returns a number of /proc/self/status, for example that of the process's threads. */
static inline long status_of(const char *name)
{
    char line[200];
    long number = -1;
    FILE *file = fopen("/proc/self/status", "r");

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
            number = strtol(line + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return number;
}

#ifdef COUNT_BLOCKS
/* Blocks that this thread has asked for. Volatile, because compilers believe that leaf functions
 * such as dlsym() do not change it. */
static __thread volatile unsigned blocks;
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
    blocks++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    blocks++;
    return __libc_calloc(count, size);
}
#endif

/* Ends the process, whatever its threads and destructors would still do. */
static inline void finish(void)
{
    fflush(stdout);
    _exit(0);
}

/* For a row that cannot be asked here. */
static inline void skip(const char *reason)
{
    puts(reason);
    exit(77);
}
