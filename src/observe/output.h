/* SPDX-License-Identifier: MIT */
/*
 * Prints text to a stream or a file descriptor. Nothing is allocated, and nothing depends on the
 * locale. Printing to a descriptor takes no lock and is no cancellation point.
 *
 * JSON is written by hand, because an allocator that prints its state must not allocate, as JSON
 * libraries do.
 */
#ifndef OBSERVE_OUTPUT_H
#define OBSERVE_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "base/base.h"

struct output {
    FILE *file; /* NULL if `fd` is used */
    int fd;
    int error; /* of the first write that failed; no write follows it */
    size_t used;
    char text[600]; /* not written to fd yet */
};

void output_text(struct output *output, const char *text);
void output_print(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* at most 599 bytes to fd; the rest is cut */
/* Prints a name, with '?' for control characters and for bytes that are not UTF-8. */
void output_name(struct output *output, const char *name);
/* Prints a quoted JSON string in UTF-8. Control characters and bytes that are not UTF-8 become \u
 * and four digits. */
void output_json_string(struct output *output, const char *text);
void output_bytes(struct output *output, uint64_t bytes);          /* "536.1 MB" */
void output_duration(struct output *output, uint64_t nanoseconds); /* "41.2 s" */
void output_time(struct output *output,
                 uint64_t seconds);    /* since 1970: "2026-11-23 10:00:00 UTC" */
int output_end(struct output *output); /* writes the rest; returns 0 or the error */

#endif /* OBSERVE_OUTPUT_H */
