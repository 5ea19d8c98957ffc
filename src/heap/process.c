/* SPDX-License-Identifier: MIT */
/*
 * Process life: start, fork, and what needs nothing.
 *
 * Start: by the library's constructor, or by whatever function is called before it (other
 * libraries' constructors, dlopen). Fork: all locks and all per-CPU caches are taken, in the order
 * of their ranks, so that the child finds every structure whole; it forgets the readers of threads
 * that it does not have. Exit with objects outstanding needs nothing: the system takes the pages.
 * exec neither. The library is never unloaded (rseq descriptors point into it).
 */
#include <pthread.h>

#include <prudence/prudence.h>

#include "gp/domain.h"
#include "heap/heap.h"
#include "heap/options.h"
#include "posix.h"

uint32_t process_started;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *prudence_version(void)
{
    return PRUDENCE_VERSION;
}

static void fork_prepare(void)
{
    os_lock_take(&heap_lock);
    gp_fork_prepare();
    slab_fork_prepare();
    posix_memory_fork_prepare();
}

static void fork_parent(void)
{
    posix_memory_fork_done();
    slab_fork_done();
    gp_fork_parent();
    os_lock_release(&heap_lock);
}

static void fork_child(void)
{
    posix_membarrier_fork_child();
    posix_idle_fork_child();
    posix_pressure_fork_child();
    posix_memory_fork_done();
    slab_fork_done();
    gp_fork_child();
    os_lock_release(&heap_lock);
}

static void start(void)
{
    posix_cpu_start();
    options_read_environment();
    posix_membarrier_start(option_membarrier);
    posix_percpu_start(option_rseq);
    gp_start();
    if (!slab_start())
        os_panic("no memory to start");
    pthread_atfork(fork_prepare, fork_parent, fork_child);
    store_release(&process_started, 1u);
}

void process_start_slow(void)
{
    pthread_once(&once, start);
}

/* Early, so that programs' own constructors find it done. */
__attribute__((constructor(101))) static void at_load(void)
{
    process_start();
}
