/* SPDX-License-Identifier: MIT */
/*
 * Messages, formatted on the stack and written with one write(2), so that they work with any lock
 * held, before main, and from a broken heap. Each names the thread that wrote it, except lines that
 * begin with a space, which belong to the line before.
 *
 * A message goes to descriptor 2 if that is no file of the program's (report_place.c), else to the
 * file of the option report_file, else nowhere.
 *
 * The rate of each kind of message has a limit (BURST within BURST_NS), because a mistake in a loop
 * or in hundreds of threads would fill a disk. A kind is a format, and the function that is named
 * where the message begins. A message that ends the process has no limit. The lines that belong to
 * a message share the fate of the first one.
 *
 * Locks: none, because a message may come from anywhere. Two threads that race for a row of limits
 * lose at most a count.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "os/os.h"
#include "posix.h"
#include "report.h"
#include "vfork.h"

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

/* --------------------------------------------------------------------------- limits on the rate */

#define KINDS    256 /* rows; a power of two, above the kinds that a process reports */
#define PROBES   32  /* rows that one kind may be in */
#define BURST    10
#define NOTE_MAX 64
#define BURST_NS UINT64_C(10000000000)

/* How many messages of one kind were written since `since`, and were skipped then. Atomic. */
struct message_kind {
    uintptr_t name; /* 0: a free row */
    uint64_t since;
    uint32_t count, left_out;
};

static struct message_kind message_kinds[KINDS];

/* The fate of the last message of this thread, and so of the lines that follow. */
static _Thread_local enum fate { WRITTEN, WRITTEN_LAST, LEFT_OUT } fate;

struct posix_report_losses posix_report_losses;

/* Returns a number for a kind, not 0. Names of functions are literals, so their addresses serve. */
static uintptr_t name_of_kind(const char *format, va_list arguments)
{
    uintptr_t name = (uintptr_t)format;
    va_list first;

    if (strncmp(format, "%s", 2) == 0) {
        va_copy(first, arguments);
        name += (uintptr_t)va_arg(first, const char *) << 1;
        va_end(first);
    }
    return name | 1;
}

/* Finds the row of a kind, or takes one. When all its rows are taken, two of them share
 * the last. */
static struct message_kind *row_of_kind(uintptr_t name)
{
    uint64_t hash = name * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    struct message_kind *kind = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        uintptr_t found = 0;

        kind = &message_kinds[(hash + i) % KINDS];
        if (load_relaxed(&kind->name) == name || compare_exchange(&kind->name, &found, name) ||
            found == name)
            return kind;
    }
    return kind;
}

/* Returns whether a message of this kind may be written, and if so, what its note says of others
 * that are skipped. */
static bool report_admit(struct message_kind *kind, char note[NOTE_MAX])
{
    uint64_t now = os_clock_ns(), since = load_relaxed(&kind->since);
    uint32_t count, before = 0;

    if (!since || now - since > BURST_NS) {
        store_relaxed(&kind->since, now);
        store_relaxed(&kind->count, 0u);
        before = exchange_relaxed(&kind->left_out, 0u);
    }
    count = add_relaxed(&kind->count, 1u);
    if (count >= BURST) {
        add_relaxed(&kind->left_out, 1u);
        add_relaxed(&posix_report_losses.too_many, UINT64_C(1));
        return false;
    }
    if (before)
        snprintf(note, NOTE_MAX, " (%u before this one were skipped)", before);
    else if (count + 1 == BURST)
        snprintf(note, NOTE_MAX, " (for 10 s no more messages of this kind are written)");
    return true;
}

/* ------------------------------------------------------------------------------------ the place */

bool posix_report_limited = true;
bool (*posix_report_elsewhere)(const char *text, size_t length);

static void report_put(const char *line, size_t length, bool begins)
{
    bool (*elsewhere)(const char *, size_t) = load_acquire(&posix_report_elsewhere);

    if (posix_report_may_write(fate == WRITTEN_LAST))
        posix_write(STDERR_FILENO, line, length); /* a failure cannot be reported */
    else if ((!elsewhere || !elsewhere(line, length)) && begins)
        add_relaxed(&posix_report_losses.no_place, UINT64_C(1));
}

/* ------------------------------------------------------------------------------------- messages */

/* Decides the fate of a message that begins here. */
static void report_decide(const char *format, va_list arguments, bool last, char note[NOTE_MAX])
{
    if (last || !load_relaxed(&posix_report_limited))
        fate = last ? WRITTEN_LAST : WRITTEN;
    else
        fate =
            report_admit(row_of_kind(name_of_kind(format, arguments)), note) ? WRITTEN : LEFT_OUT;
}

static void write_line(const char *format, va_list arguments, bool last)
{
    static const char prefix[] = "prudence: ";
    const bool begins = *format != ' ';
    char line[832], note[NOTE_MAX] = "";
    size_t length = sizeof prefix - 1, room = sizeof line - NOTE_MAX - WHERE_MAX;
    int written;

    if (begins)
        report_decide(format, arguments, last, note);
    if (fate == LEFT_OUT)
        return;
    memcpy(line, prefix, length);
    /* All callers have begun the list; the analyser loses track of that at prctl's own. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
    written = vsnprintf(line + length, room - length, format, arguments);
    if (written > 0)
        length += min_size((size_t)written, room - length - 1);
    length += (size_t)snprintf(line + length, NOTE_MAX, "%s", note);
    if (begins)
        length += where(line + length);
    keep_printable(line, length);
    line[length++] = '\n';
    report_put(line, length, begins);
}

void os_report(const char *format, ...)
{
    int saved_errno = errno;
    va_list arguments;

    va_start(arguments, format);
    write_line(format, arguments, false);
    va_end(arguments);
    errno = saved_errno;
}

void os_report_misuse(const char *format, ...)
{
    int saved_errno = errno;
    va_list arguments;

    va_start(arguments, format);
    write_line(format, arguments, true);
    va_end(arguments);
    errno = saved_errno;
}

void os_panic(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    write_line(format, arguments, true);
    va_end(arguments);
    os_abort();
}

__thread bool os_in_vfork_child;

/* In a child of vfork, abort() would leave its lock taken in the parent's memory. */
void os_abort(void)
{
    if (unlikely(os_in_vfork_child)) {
        raise(SIGABRT);
        _exit(128 + SIGABRT); /* the program's handler has returned, or the signal is blocked */
    }
    abort();
}
