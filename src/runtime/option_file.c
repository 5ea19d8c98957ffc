/* SPDX-License-Identifier: MIT */
/* Files that options name: what is written there on demand, perhaps in a signal handler. By system calls of our own,
 * because libc's functions are cancellation points. */
#define _GNU_SOURCE /* syscall */
#include "runtime/option_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/os.h"

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

int option_file_open(const char *path, int flags)
{
    const char *mark = strstr(path, "%p");
    char name[OPTION_FILE_SIZE + 12];

    if (mark)
        snprintf(name, sizeof name, "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    return (int)syscall(SYS_openat, AT_FDCWD, mark ? name : path,
                        O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
}

void option_file_close(int fd)
{
    syscall(SYS_close, fd);
}
