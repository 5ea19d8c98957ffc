/* SPDX-License-Identifier: MIT */
/*
 * Messages: formatted on the stack and written with one write(2), so that they work with any lock
 * held, before main and from a broken heap. Each says in which thread it was written; lines that begin with a
 * space go with the one before.
 */
#define _GNU_SOURCE /* gettid */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"

#define WHERE_MAX 64 /* bytes for the name of the reporting thread */

static size_t where(char *line)
{
    char name[16] = "";
    int written;

    prctl(PR_GET_NAME, name);
    written = snprintf(line, WHERE_MAX, " [in thread '%.15s' (tid %d)]", name, (int)gettid());
    return written > 0 ? (size_t)written : 0;
}

static void write_line(const char *format, va_list arguments)
{
    static const char prefix[] = "prudence: ";
    char line[768];
    size_t length = sizeof prefix - 1;
    int saved_errno = errno;
    int written;

    memcpy(line, prefix, length);
    /* Both callers have begun the list; the analyser loses that at prctl's own. */
    written = vsnprintf(line + length, sizeof line - length - WHERE_MAX, format,
                        arguments); /* NOLINT(clang-analyzer-valist.Uninitialized) */
    if (written > 0)
        length += min_size((size_t)written, sizeof line - length - WHERE_MAX - 1);
    if (*format != ' ')
        length += where(line + length);
    line[length++] = '\n';
    posix_write(STDERR_FILENO, line, length); /* if it fails, nobody is left to tell */
    errno = saved_errno;
}

void os_report(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

void os_panic(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
    os_abort();
}

void os_abort(void)
{
    abort();
}
