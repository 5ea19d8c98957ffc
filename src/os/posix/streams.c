/* SPDX-License-Identifier: MIT */
/*
 * The lock of libc's list of streams, across fork.
 *
 * fork takes it itself, after all handlers have run, and so with our locks held. The lock's holder (fflush(NULL),
 * fopen) may wait for a stream's lock; the holder of that (getline) may be in malloc, and wait for one of our locks.
 * libc's own malloc knows the order: the list of streams first, malloc's locks last. We use the same order: our
 * handler takes the lock first. fork's own taking then finds it held by its own thread, which is allowed, because the
 * lock is recursive.
 *
 * Only if the process has threads: then libc makes the lock anew in the child. glibc has had these functions since
 * its beginnings; if they are missing nothing is done.
 */
#include "base/base.h"
#include "posix.h"

extern void _IO_list_lock(void) __attribute__((weak));
extern void _IO_list_unlock(void) __attribute__((weak));
extern void _IO_list_resetlock(void) __attribute__((weak));
extern char __libc_single_threaded __attribute__((weak));

static bool held; /* by fork; guarded by that lock */

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

/* libc has done the same already, unless the process's second thread was made by a fork handler. */
void posix_streams_fork_child(bool whole)
{
    (void)whole;
    if (!held)
        return;
    held = false;
    _IO_list_resetlock();
}
