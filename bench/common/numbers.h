/* SPDX-License-Identifier: MIT */
/* Numbers as a person types them. */
#ifndef BENCH_NUMBERS_H
#define BENCH_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define NUMBERS 32

struct numbers {
    uint64_t value[NUMBERS];
    unsigned count;
};

/* "512" or "2G" (K, M, G: powers of 1,024), from `least` to `most`. False: it is not one. */
bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* Up to NUMBERS of them, with commas between. */
bool numbers_parse(const char *text, uint64_t least, uint64_t most, struct numbers *numbers);

/* "0.5" or "10": seconds, more than 0 and up to a day. */
bool seconds_parse(const char *text, double *seconds);

#endif /* BENCH_NUMBERS_H */
