/* SPDX-License-Identifier: MIT */
/*
 * A library loaded before the others. Its functions replace those of libc and allocate before they
 * do their work, as in tracers, profilers, libfaketime and MPI libraries. ENVIRONMENT_INTERPOSE
 * names the function that allocates; the others only pass calls on.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IN_LIBRARY __attribute__((visibility("default")))

void *prudence_malloc(size_t size)
    __attribute__((weak)); /* in programs that have the library, but not as malloc */
void prudence_free(void *object) __attribute__((weak));

static __thread int inside __attribute__((tls_model("initial-exec")));

/* Reads ENVIRONMENT_INTERPOSE. Calls no getenv(), because libc's functions may be interposed. */
static const char *wanted(void)
{
    static const char name[] = "ENVIRONMENT_INTERPOSE=";

    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, sizeof name - 1) == 0)
            return *entry + sizeof name - 1;
    return "";
}

static void allocate(size_t size)
{
    void *block = prudence_malloc ? prudence_malloc(size) : malloc(size);

    if (!block)
        abort();
    memset(block, 1, size);
    if (prudence_malloc)
        prudence_free(block);
    else
        free(block);
}

static void note(const char *name)
{
    if (inside || strcmp(wanted(), name) != 0)
        return;
    inside = 1;
    for (size_t size = 10; size < 60000; size *= 3)
        allocate(size);
    inside = 0;
}

/* Returns the next definition of `name`, which is searched once. dlsym() may call interposed
 * functions; `inside` keeps them from allocating. */
static void *real(const char *name, void **known)
{
    void *found = __atomic_load_n(known, __ATOMIC_RELAXED);
    int before = inside;

    if (found)
        return found;
    inside = 1;
    found = dlsym(RTLD_NEXT, name);
    inside = before;
    if (!found)
        abort();
    __atomic_store_n(known, found, __ATOMIC_RELAXED);
    return found;
}

#define INTERPOSE(result, name, parameters, arguments)                                             \
    IN_LIBRARY result name parameters;                                                             \
    result name parameters                                                                         \
    {                                                                                              \
        static void *known;                                                                        \
                                                                                                   \
        note(#name);                                                                               \
        return ((result(*) parameters)(size_t)real(#name, &known))arguments;                       \
    }

/* These use system calls, because dlsym() itself could need the functions. */
IN_LIBRARY void *mmap(void *place, size_t size, int protection, int flags, int file, off_t offset)
{
    note("mmap");
    return (void *)syscall(SYS_mmap, place, size, protection, flags, file, offset);
}

IN_LIBRARY int munmap(void *place, size_t size)
{
    note("munmap");
    return (int)syscall(SYS_munmap, place, size);
}

IN_LIBRARY int madvise(void *place, size_t size, int advice)
{
    note("madvise");
    return (int)syscall(SYS_madvise, place, size, advice);
}

IN_LIBRARY int mprotect(void *place, size_t size, int protection)
{
    note("mprotect");
    return (int)syscall(SYS_mprotect, place, size, protection);
}

IN_LIBRARY void *mremap(void *place, size_t before, size_t size, int flags, ...)
{
    va_list more;
    void *target;

    va_start(more, flags);
    target = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    note("mremap");
    return (void *)syscall(SYS_mremap, place, before, size, flags, target);
}

IN_LIBRARY int open(const char *path, int flags, ...)
{
    va_list more;
    int mode;

    va_start(more, flags);
    mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    note("open");
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

IN_LIBRARY pid_t getpid(void)
{
    note("getpid");
    return (pid_t)syscall(SYS_getpid);
}

INTERPOSE(ssize_t, read, (int file, void *bytes, size_t size), (file, bytes, size))
INTERPOSE(ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
INTERPOSE(int, close, (int file), (file))
INTERPOSE(char *, getenv, (const char *name), (name))
INTERPOSE(char *, secure_getenv, (const char *name), (name))
INTERPOSE(long, sysconf, (int name), (name))
INTERPOSE(int, getrlimit, (__rlimit_resource_t resource, struct rlimit *limit), (resource, limit))
INTERPOSE(int, sched_getaffinity, (pid_t thread, size_t size, cpu_set_t *set), (thread, size, set))
INTERPOSE(int, sched_getscheduler, (pid_t thread), (thread))
INTERPOSE(int, sched_getcpu, (void), ())
INTERPOSE(int, sched_yield, (void), ())
INTERPOSE(int, clock_gettime, (clockid_t clock, struct timespec *time), (clock, time))
INTERPOSE(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
INTERPOSE(int, clock_nanosleep,
          (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
          (clock, flags, time, left))
INTERPOSE(int, sigaction, (int signal, const struct sigaction *action, struct sigaction *before),
          (signal, action, before))
INTERPOSE(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *before),
          (how, set, before))
INTERPOSE(int, pthread_create,
          (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *),
           void *argument),
          (thread, attributes, run, argument))
INTERPOSE(int, pthread_key_create, (pthread_key_t * key, void (*destructor)(void *)),
          (key, destructor))
INTERPOSE(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
INTERPOSE(void *, pthread_getspecific, (pthread_key_t key), (key))
INTERPOSE(int, pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
INTERPOSE(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
INTERPOSE(pthread_t, pthread_self, (void), ())
INTERPOSE(FILE *, fopen, (const char *path, const char *mode), (path, mode))
