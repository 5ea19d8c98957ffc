/* SPDX-License-Identifier: MIT */
/* Reading what the system tells in files. */
#include <fcntl.h>
#include <unistd.h>

#include "posix.h"

bool posix_file_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return false;
    length = read(fd, text, size - 1);
    close(fd);
    if (length <= 0)
        return false;
    text[length] = '\0';
    return true;
}
