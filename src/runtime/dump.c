/* SPDX-License-Identifier: MIT */
/*
 * The summary on demand: prudence_dump, and the options dump (a signal: signals.c) and dump_file (where to).
 */
#define _GNU_SOURCE /* syscall */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "os/os.h"
#include "process.h"
#include "runtime/options.h"
#include "runtime/signals.h"
#include "runtime/summary.h"

int prudence_dump(int fd)
{
    struct output output = {.fd = fd};
    int saved_errno = errno, error;

    if (os_busy) {
        summary_print_without_locks(&output);
    } else {
        process_start();
        summary_print(&output, false);
    }
    error = output_end(&output);
    errno = saved_errno;
    return error;
}

/* ------------------------------------------------------------------------------------------ where to */

#define PATH_SIZE 128 /* an option of the environment is no longer */

/* NULL: standard error. Never freed, because a handler may read the one before. Atomic. */
static const char *file;

bool dump_set_file(const char *path)
{
    size_t bytes = strlen(path) + 1;
    char *copy = NULL;

    if (bytes > PATH_SIZE)
        return false;
    if (bytes > 1) {
        copy = os_meta_alloc(PATH_SIZE);
        if (!copy)
            return false;
        memcpy(copy, path, bytes);
    }
    store_release(&file, (const char *)copy);
    return true;
}

/* With the process's id instead of the first "%p". */
static int open_file(const char *name)
{
    const char *mark = strstr(name, "%p");
    char path[PATH_SIZE + 12];

    if (mark)
        snprintf(path, sizeof path, "%.*s%d%s", (int)(mark - name), name, (int)getpid(), mark + 2);
    else
        snprintf(path, sizeof path, "%s", name);
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                        0600);
}

void dump_at_signal(uint64_t choice)
{
    const char *name = load_acquire(&file);
    int fd = name ? open_file(name) : -1;

    (void)choice;
    if (name && fd < 0)
        os_report("option 'dump_file': '%s' cannot be opened (error %d); it goes to standard error",
                  name, errno);
    prudence_dump(fd < 0 ? STDERR_FILENO : fd);
    if (fd >= 0)
        syscall(SYS_close, fd);
}
