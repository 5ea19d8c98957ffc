/* SPDX-License-Identifier: MIT */
/*
 * Text on its way to a stream, or to a file descriptor. Nothing is allocated, nothing depends on the locale, and towards a
 * descriptor no lock is taken and no function is a cancellation point.
 *
 * JSON is written by hand with it: an allocator that prints its state must not allocate, as JSON libraries do.
 */
#ifndef RUNTIME_OUTPUT_H
#define RUNTIME_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"

struct output {
    FILE *file; /* NULL: fd */
    int fd;
    int error; /* that of the first write that failed; none after it is tried */
    size_t used;
    char text[600]; /* what is not written yet, to fd */
};

void output_text(struct output *output, const char *text);
void output_print(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* to fd at most 599 bytes; the rest is cut */
/* A name as text: '?' for what would end the line, for what a terminal obeys, and for bytes that are not UTF-8. */
void output_name(struct output *output, const char *name);
/* In quotes, as UTF-8; what a terminal obeys, and bytes that are not UTF-8, as \u and four digits. */
void output_json_string(struct output *output, const char *text);
void output_bytes(struct output *output, uint64_t bytes);          /* "536.1 MB" */
void output_duration(struct output *output, uint64_t nanoseconds); /* "41.2 s" */
void output_time(struct output *output,
                 uint64_t seconds);    /* since 1970: "2026-11-23 10:00:00 UTC" */
int output_end(struct output *output); /* writes what is left; 0, or the error */

#endif /* RUNTIME_OUTPUT_H */
