/* SPDX-License-Identifier: MIT */
/* The JSON document that a program writes: what was measured, when and where. */
#ifndef BENCH_DOCUMENT_H
#define BENCH_DOCUMENT_H

#include <jansson.h>

/* "program", "date" (now, UTC) and "host"; a new reference. */
json_t *document_begin(const char *program);

/* 0; or -1, after a message: it cannot be written there. */
int document_write(json_t *document, const char *path);

#endif /* BENCH_DOCUMENT_H */
