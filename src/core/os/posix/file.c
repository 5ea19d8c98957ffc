/* SPDX-License-Identifier: MIT */
/*
 * Reads the system's files by direct system calls. libc's functions are cancellation points, and an
 * allocation must be none.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "posix.h"
#include "system_call.h"

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

/* Makes a call that every sandbox allows, because others that answer the same may kill. */
bool posix_file_refuses_mapping(int fd)
{
    long page = bare_system_call(SYS_mmap, 0, 1, PROT_NONE, MAP_PRIVATE, fd, 0);

    if (page >= 0 || page < -4095)
        bare_system_call(SYS_munmap, page, 1, 0, 0, 0, 0);
    return page == -EACCES || page == -ENODEV;
}
