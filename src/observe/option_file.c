/* SPDX-License-Identifier: MIT */
/* Files that options name, written on demand, perhaps in a signal handler. Direct system calls are
 * used because libc's functions are cancellation points. All calls on a descriptor that
 * ThreadSanitizer follows are hidden from it together, because it would report a part. */
#define _GNU_SOURCE /* syscall */
#include "observe/option_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "observe/careful_open.h"
#include "os/os.h"

const char *option_file_hint(int error)
{
    return error == ELOOP
               ? ": a symbolic link in its path belongs to another user, or leads in a circle"
               : "";
}

bool option_file_set(struct option_file *file, const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *copy = NULL;

    if (bytes > OPTION_FILE_SIZE)
        return false;
    if (bytes > 1) {
        copy = os_meta_alloc(OPTION_FILE_SIZE);
        if (!copy)
            return false;
        memcpy(copy, path, bytes);
    }
    store_release(&file->path, (const char *)copy);
    return true;
}

/* Locks and empties a regular file; others need neither. Returns false and sets errno if another
 * writer has the lock, or if the file cannot be emptied. On a file system without locks there is
 * none. */
static bool overwrite(int fd)
{
    struct stat of;

    if (syscall(SYS_fstat, fd, &of) || !S_ISREG(of.st_mode))
        return true;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return false;
    return ftruncate(fd, 0) == 0;
}

/* Moves fd above the standard descriptors, because a program that closed one of these may still
 * write to that number. Keeps fd if no other number is free. */
static int behind_standard_descriptors(int fd)
{
    int other = fd <= STDERR_FILENO ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;

    if (other >= 0)
        syscall(SYS_close, fd);
    return other >= 0 ? other : fd;
}

int option_file_open_path(const char *path, enum option_file_use use)
{
    int flags = use == OPTION_FILE_APPEND ? O_APPEND : 0;
    int fd;

    if (load_relaxed(&os_calls) == OS_CALLS_FEW) {
        errno = EPERM;
        return -1;
    }
    fd = careful_open(path, O_WRONLY | O_CREAT | O_NOCTTY | O_NONBLOCK | flags, 0600);
    if (fd < 0)
        return fd;
    fd = behind_standard_descriptors(fd);
    fcntl(fd, F_SETFL, flags); /* only the open must not block */
    if (use == OPTION_FILE_OVERWRITE && !overwrite(fd)) {
        int error = errno;

        option_file_close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int option_file_open(const char *path, enum option_file_use use)
{
    const char *mark = strstr(path, "%p");
    char name[OPTION_FILE_SIZE + 12];

    if (mark)
        snprintf(name, sizeof name, "%.*s%d%s", (int)(mark - path), path, os_process_id(),
                 mark + 2);
    return option_file_open_path(mark ? name : path, use);
}

/* Unlocks before closing, because a child forked in between also has the file open and would keep
 * the lock. */
void option_file_close(int fd)
{
    flock(fd, LOCK_UN);
    syscall(SYS_close, fd);
}
