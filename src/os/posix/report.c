/* SPDX-License-Identifier: MIT */
/*
 * Messages, formatted on the stack and written with one write(2), so that they work with any lock
 * held, before main, and from a broken heap. Each names the thread that wrote it, except lines that
 * begin with a space, which belong to the line before.
 */
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

    if (os_calls_are_few()) {
        written = snprintf(line, WHERE_MAX, " [in thread %d]", os_thread_id());
    } else {
        prctl(PR_GET_NAME, name);
        written = snprintf(line, WHERE_MAX, " [in thread '%.15s' (tid %d)]", name, os_thread_id());
    }
    return written > 0 ? (size_t)written : 0;
}

/* Replaces characters that a terminal obeys (U+0000 to U+001F, U+007F to U+009F), because names
 * come from outside and must not end the line. */
static void keep_printable(char *line, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)line[i];
        unsigned char next = i + 1 < length ? (unsigned char)line[i + 1] : 0;

        if (byte < 0x20 || byte == 0x7f)
            line[i] = '?';
        else if (byte == 0xc2 && next >= 0x80 && next < 0xa0)
            line[i] = line[i + 1] = '?';
    }
}

static void write_line(const char *format, va_list arguments)
{
    static const char prefix[] = "prudence: ";
    char line[768];
    size_t length = sizeof prefix - 1;
    int saved_errno = errno;
    int written;

    memcpy(line, prefix, length);
    /* Both callers have begun the list; the analyser loses track of that at prctl's own. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    written = vsnprintf(line + length, sizeof line - length - WHERE_MAX, format, arguments);
    if (written > 0)
        length += min_size((size_t)written, sizeof line - length - WHERE_MAX - 1);
    if (*format != ' ')
        length += where(line + length);
    keep_printable(line, length);
    line[length++] = '\n';
    posix_write(STDERR_FILENO, line, length); /* a failure cannot be reported */
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
