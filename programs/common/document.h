/* SPDX-License-Identifier: MIT */
/* The JSON document that a program writes: the measurements, with time and place. */
#ifndef BENCH_DOCUMENT_H
#define BENCH_DOCUMENT_H

#include <jansson.h>

/* Makes a document with "program", "date" (now, UTC) and "host". Returns a new reference. */
json_t *document_begin(const char *program);

/* Returns 0, or -1, after a message, if it cannot be written there. */
int document_write(json_t *document, const char *path);

#endif /* BENCH_DOCUMENT_H */
