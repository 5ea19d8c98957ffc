/* SPDX-License-Identifier: MIT */
/*
 * The summary on demand, by prudence_dump() or the options dump (a signal, see signals.c) and
 * dump_file.
 */
#include <errno.h>
#include <unistd.h>

#include <prudence/stats.h>

#include "observe/option_file.h"
#include "observe/options.h"
#include "observe/report_file.h"
#include "observe/signals.h"
#include "observe/summary.h"
#include "os/os.h"
#include "process.h"

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

/* ------------------------------------------------------------------------------------ the file */

static struct option_file dump_file; /* no path means standard error */

bool dump_set_file(const char *path)
{
    return option_file_set(&dump_file, path);
}

static void dump_to(int fd, void (*close_it)(int))
{
    if (fd < 0)
        return;
    prudence_dump(fd);
    close_it(fd);
}

void dump_at_signal(uint64_t choice)
{
    const char *name = load_acquire(&dump_file.path);
    int fd = name ? option_file_open(name, OPTION_FILE_APPEND) : -1;

    (void)choice;
    if (name && fd < 0)
        os_report(
            "option 'dump_file': '%s' cannot be opened (error %d%s); the dump goes to standard "
            "error",
            name, errno, option_file_hint(errno));
    if (fd >= 0)
        dump_to(fd, option_file_close);
    else
        dump_to(report_file_open(), report_file_close);
}
