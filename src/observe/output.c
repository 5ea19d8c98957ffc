/* SPDX-License-Identifier: MIT */
/* Prints text to a stream or a file descriptor (output.h). */
#include "observe/output.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "posix.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static void write_out(struct output *output)
{
    if (!output->error)
        output->error = posix_write(output->fd, output->text, output->used);
    output->used = 0;
}

static void output_put(struct output *output, const char *text, size_t length)
{
    if (output->file) {
        fwrite(text, 1, length, output->file);
        return;
    }
    while (length) {
        size_t some = min_size(length, sizeof output->text - output->used);

        memcpy(output->text + output->used, text, some);
        output->used += some;
        text += some;
        length -= some;
        if (output->used == sizeof output->text)
            write_out(output);
    }
}

void output_text(struct output *output, const char *text)
{
    output_put(output, text, strlen(text));
}

/* Appends formatted text to the buffer. Returns false if the text does not fit; an empty buffer
 * takes the text, cut. */
static bool print_behind(struct output *output, const char *format, va_list arguments)
{
    size_t room = sizeof output->text - output->used;
    int length = vsnprintf(output->text + output->used, room, format, arguments);

    if (length >= 0 && (size_t)length >= room) {
        if (output->used)
            return false;
        length = (int)room - 1; /* too long even for an empty buffer, so cut */
    }
    output->used += length > 0 ? (size_t)length : 0;
    return true;
}

void output_print(struct output *output, const char *format, ...)
{
    va_list arguments, again;

    va_start(arguments, format);
    va_copy(again, arguments);
    if (output->file) {
        vfprintf(output->file, format, arguments);
    } else if (!print_behind(output, format, arguments)) {
        write_out(output);
        print_behind(output, format, again);
    }
    va_end(again);
    va_end(arguments);
}

int output_end(struct output *output)
{
    if (output->file)
        return ferror(output->file) ? EIO : 0;
    write_out(output);
    return output->error;
}

/* ------------------------------------------------------------------------------------- strings */

/* Returns the length of the UTF-8 character at `text`, or 0 if there is none. Overlong forms and
 * surrogates are none (RFC 3629). */
static unsigned utf8_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char first_least, first_most, second_least, second_most, bytes;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    unsigned form = 0, bytes = 1;

    while (form < COUNT_OF(forms) && text[0] > forms[form].first_most)
        form++;
    if (form == COUNT_OF(forms) || text[0] < forms[form].first_least)
        return 0;
    if (forms[form].bytes == 1)
        return 1;
    if (text[1] < forms[form].second_least || text[1] > forms[form].second_most)
        return 0;
    while (++bytes < forms[form].bytes)
        if ((text[bytes] & 0xc0) != 0x80)
            return 0;
    return bytes;
}

/* U+0000 to U+001F, and U+007F to U+009F. */
static bool is_control(const unsigned char *text)
{
    return *text < 0x20 || *text == 0x7f || (*text == 0xc2 && text[1] >= 0x80 && text[1] < 0xa0);
}

void output_name(struct output *output, const char *name)
{
    const unsigned char *text = (const unsigned char *)name;

    while (*text) {
        unsigned bytes = utf8_bytes(text);

        if (bytes && !is_control(text))
            output_put(output, (const char *)text, bytes);
        else
            output_text(output, "?");
        text += bytes ? bytes : 1;
    }
}

void output_json_string(struct output *output, const char *name)
{
    const unsigned char *text = (const unsigned char *)name;

    output_text(output, "\"");
    while (*text) {
        unsigned bytes = utf8_bytes(text);

        if (*text == '"' || *text == '\\')
            output_print(output, "\\%c", *text);
        else if (is_control(text))
            output_print(output, "\\u%04x", bytes == 2 ? text[1] : text[0]);
        else if (bytes)
            output_put(output, (const char *)text, bytes);
        else
            output_text(output, "\\ufffd");
        text += bytes ? bytes : 1;
    }
    output_text(output, "\"");
}

/* ------------------------------------------------------------------------------------- figures */

/* Prints the value in the largest unit not above it, with one decimal. */
static void in_units(struct output *output, uint64_t value, const uint64_t *units,
                     const char *const *names, unsigned count)
{
    unsigned i = 0;

    while (i + 1 < count && value < units[i])
        i++;
    output_print(output, "%llu", (unsigned long long)(value / units[i]));
    if (units[i] > 1)
        output_print(output, ".%llu", (unsigned long long)(value % units[i] * 10 / units[i]));
    output_print(output, " %s", names[i]);
}

void output_bytes(struct output *output, uint64_t bytes)
{
    static const uint64_t units[] = {1 << 30, 1 << 20, 1 << 10, 1};
    static const char *const names[] = {"GB", "MB", "KB", "bytes"};

    in_units(output, bytes, units, names, COUNT_OF(units));
}

void output_duration(struct output *output, uint64_t nanoseconds)
{
    static const uint64_t units[] = {1000000000, 1000000, 1000, 1};
    static const char *const names[] = {"s", "ms", "us", "ns"};

    in_units(output, nanoseconds, units, names, COUNT_OF(units));
}

static bool is_leap(unsigned year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Computes the date here, because libc's function takes the lock of time zones. */
void output_time(struct output *output, uint64_t seconds)
{
    static const unsigned char days_of[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint64_t days = seconds / 86400, of_day = seconds % 86400;
    unsigned year = 1970, month = 0;

    while (days >= 365u + is_leap(year))
        days -= 365u + is_leap(year++);
    while (days >= days_of[month] + (month == 1 && is_leap(year) ? 1u : 0u)) {
        days -= days_of[month] + (month == 1 && is_leap(year) ? 1u : 0u);
        month++;
    }
    output_print(output, "%04u-%02u-%02u %02u:%02u:%02u UTC", year, month + 1, (unsigned)days + 1,
                 (unsigned)(of_day / 3600), (unsigned)(of_day / 60 % 60), (unsigned)(of_day % 60));
}
