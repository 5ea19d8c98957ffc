/* SPDX-License-Identifier: MIT */
/* The option report_file: the place of messages that may not go to descriptor 2 (report_file.h). */
#include "observe/report_file.h"

#include <unistd.h>

#include "observe/option_file.h"
#include "posix.h"
#include "report.h"

static struct option_file report_file;

static int open_it(void)
{
    const char *path = load_acquire(&report_file.path);

    return path ? option_file_open(path, OPTION_FILE_APPEND) : -1;
}

static bool write_to_file(const char *text, size_t length)
{
    int fd = open_it();
    bool written = fd >= 0 && posix_write(fd, text, length) == 0;

    if (fd >= 0)
        option_file_close(fd);
    return written;
}

bool report_file_set(const char *path)
{
    store_release(&posix_report_elsewhere, write_to_file);
    return option_file_set(&report_file, path);
}

int report_file_open(void)
{
    int fd = posix_report_may_write(false) ? STDERR_FILENO : open_it();

    if (fd < 0)
        add_relaxed(&posix_report_losses.no_place, UINT64_C(1));
    return fd;
}

void report_file_close(int fd)
{
    if (fd > STDERR_FILENO)
        option_file_close(fd);
}
