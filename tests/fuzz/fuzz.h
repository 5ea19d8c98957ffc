/* SPDX-License-Identifier: MIT */
/*
 * Shared by fuzz targets. A target is a file tests/fuzz/fuzz_*.c with the function below, linked
 * either with libFuzzer (tools/test/fuzz) or with replay.c, which runs the target on the committed
 * corpus.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs one input and returns 0. Ends the process if something is wrong. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process unless `condition` holds; the rest is a printf format and its arguments. */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s: ", __FILE__, __LINE__, #condition);                \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif /* FUZZ_H */
