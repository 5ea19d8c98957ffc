/* SPDX-License-Identifier: MIT */
/*
 * Decides whether text may go to descriptor 2 (ADR 158). A program that has closed its standard
 * descriptors gets number 2 for the next file that it opens, perhaps a database. So the descriptor
 * is read before each message. It is good if it is the file that the process started with, a
 * terminal, a pipe or a socket, or open for append, as the log of a daemon is. The null device is
 * not good, because no program reads it.
 *
 * A sandbox may kill a process for asking. So with sandbox=1, and when a plain program on
 * libprudence-malloc is about to end, the library tries to map the descriptor, a call that every
 * malloc makes. A file that can be mapped is open for reading, as databases are; pipes, sockets,
 * terminals, and files that are only written to, cannot be mapped.
 *
 * The identity is noted once, at start, so there is no lock. No duplicate of the descriptor is
 * kept, because a duplicate would keep the reader of a pipe waiting.
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include "posix.h"
#include "report.h"

/* Distinguishes an open file from another. The access mode belongs to it, because a file system may
 * give the number of a removed log to the next file, which is then mostly open for reading too. */
struct identity {
    dev_t device;
    ino_t inode;
    int access;
};

static struct identity at_start;
static uint32_t identity_noted; /* atomic */

/* Returns the flags of an open descriptor, or -1 for kinds of files that need none. */
static int flags_of(const struct stat *file)
{
    return S_ISCHR(file->st_mode) || S_ISFIFO(file->st_mode) || S_ISSOCK(file->st_mode)
               ? -1
               : (int)syscall(SYS_fcntl, STDERR_FILENO, F_GETFL);
}

static struct identity identity_of(const struct stat *file, int flags)
{
    return (struct identity){file->st_dev, file->st_ino, flags < 0 ? -1 : flags & O_ACCMODE};
}

static bool is_as_at_start(const struct stat *file, int flags)
{
    struct identity now = identity_of(file, flags);

    return load_acquire(&identity_noted) && now.device == at_start.device &&
           now.inode == at_start.inode && now.access == at_start.access;
}

static bool is_terminal(void)
{
    struct termios state;

    return syscall(SYS_ioctl, STDERR_FILENO, TCGETS, &state) == 0;
}

COLD void posix_report_start(void)
{
    int saved_errno = errno;
    struct stat file;

    if (load_acquire(&identity_noted))
        return;
    if (syscall(SYS_fstat, STDERR_FILENO, &file) == 0)
        at_start = identity_of(&file, flags_of(&file));
    else
        at_start = (struct identity){.access = -2}; /* no file is like this */
    store_release(&identity_noted, 1u);
    errno = saved_errno;
}

static bool is_good(const struct stat *file)
{
    int flags;

    if (S_ISFIFO(file->st_mode) || S_ISSOCK(file->st_mode))
        return true;
    if (S_ISCHR(file->st_mode) && file->st_rdev == makedev(1, 3))
        return false;
    flags = flags_of(file);
    return is_as_at_start(file, flags) || (flags >= 0 && flags & O_APPEND) ||
           (S_ISCHR(file->st_mode) && is_terminal());
}

/* Returns whether the library may make the calls by which it asks. */
static bool report_may_ask(bool last)
{
    return load_relaxed(&os_calls) != OS_CALLS_FEW && !(last && os_calls_are_few());
}

bool posix_report_may_write(bool last)
{
    int saved_errno = errno;
    struct stat file;
    bool may;

    if (report_may_ask(last))
        posix_report_start(); /* for messages before the library has started */
    if (report_may_ask(last) && syscall(SYS_fstat, STDERR_FILENO, &file) == 0)
        may = is_good(&file);
    else
        may = posix_file_refuses_mapping(STDERR_FILENO); /* may not ask, or the system refuses */
    errno = saved_errno;
    return may;
}
