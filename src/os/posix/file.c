/* SPDX-License-Identifier: MIT */
/*
 * Reads the system's files by direct system calls. libc's functions are cancellation points, and an
 * allocation must be none.
 */
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "posix.h"

bool posix_file_read(const char *path, char *text, size_t size)
{
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return false;
    length = syscall(SYS_read, fd, text, size - 1);
    syscall(SYS_close, fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return true;
}
