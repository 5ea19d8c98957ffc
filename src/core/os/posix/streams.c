/* SPDX-License-Identifier: MIT */
/*
 * The lock of libc's list of streams, across fork.
 *
 * fork itself takes the lock after all handlers have run, and so with our locks held. The lock's
 * holder (fflush(NULL), fopen) may wait for a stream's lock. The holder of that (getline) may be in
 * malloc and wait for one of our locks. libc's own malloc follows an order: the list of streams
 * first, malloc's locks last. We follow it too: our handler takes the list's lock first. fork then
 * finds the lock held by the forking thread, which is allowed because the lock is recursive.
 *
 * This is done only if the process has threads, because only then does libc make the lock anew in
 * the child. glibc has always had these functions; if they are missing, nothing is done.
 */
#include "base/base.h"
#include "posix.h"

extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

static bool held; /* by fork; protected by that lock */

void posix_streams_fork_prepare(void)
{
    if (!_IO_list_lock || !_IO_list_unlock || !_IO_list_resetlock)
        return;
    if (&__libc_single_threaded && __libc_single_threaded)
        return;
    _IO_list_lock();
    held = true;
}

void posix_streams_fork_done(void)
{
    if (!held)
        return;
    held = false;
    _IO_list_unlock();
}

/* libc has already reset the lock, unless a fork handler created the process's second thread. */
void posix_streams_fork_child(bool whole)
{
    (void)whole;
    if (!held)
        return;
    held = false;
    _IO_list_resetlock();
}
