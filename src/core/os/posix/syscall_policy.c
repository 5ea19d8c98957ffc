/* SPDX-License-Identifier: MIT */
/* Few system calls (syscall_policy.h), and the ids of thread and process without one. */
#define _GNU_SOURCE /* gettid */
#include <pthread.h>
#include <unistd.h>
#if __has_include(<sys/single_threaded.h>) /* glibc 2.32 */
#include <sys/single_threaded.h>
#define TELLS_OF_THREADS 1
#endif

#include "os/os.h"
#include "posix.h"

uint32_t os_calls READ_MOSTLY = OS_CALLS_ALL;
static int process_id; /* written at start, and by the only thread of a copy */

bool os_is_single_threaded(void)
{
#ifdef TELLS_OF_THREADS
    return __libc_single_threaded;
#else
    return false;
#endif
}

/* Returns this thread's id, which the C library knows and writes as owner into a mutex. The id
 * is right in a child of fork and of _Fork. In a copy made by clone() it is the original's. */
static int id_by_mutex(void)
{
#if defined(__GLIBC__)
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    int id;

    pthread_mutex_lock(&mutex);
    id = mutex.__data.__owner;
    pthread_mutex_unlock(&mutex);
    return id;
#else
    return 0;
#endif
}

int os_thread_id(void)
{
    int id = os_calls_are_few() ? id_by_mutex() : 0;

    return id ? id : gettid();
}

int os_process_id(void)
{
    return os_calls_are_few() ? load_relaxed(&process_id) : getpid();
}

int posix_thread_id_known(void)
{
    int id = id_by_mutex();

    return id || os_calls_are_few() ? id : gettid();
}

/* Uses the thread's id, because the thread that forks is the child's first, and so both ids are
 * equal. */
COLD void posix_process_note(void)
{
    store_relaxed(&process_id, os_calls_are_few() ? os_thread_id() : getpid());
}
