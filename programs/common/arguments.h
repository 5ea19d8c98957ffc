/* SPDX-License-Identifier: MIT */
/* Parses numbers and names from a command line, alone or with commas between. A program that uses
 * this has --version. */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#define NUMBERS 32

struct numbers {
    uint64_t value[NUMBERS];
    unsigned count;
};

/* Parses "512", "2G" (K, M, G: powers of 1,024) or "2^9". Returns false if the text is not a
 * number from `least` to `most`. */
bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* Returns the name of that index, or NULL after the last one. */
typedef const char *name_function(unsigned index);

/* Finds the index of a name. Returns false if there is none. */
bool name_parse(const char *text, name_function *name, unsigned *index);

/*
 * For parsers of argp: return the value of the option `key`, or of an argument without one
 * (ARGP_KEY_ARG). A wrong text ends the program, with a message that names the option, the text,
 * and the expected values.
 */
uint64_t argument_number(struct argp_state *state, int key, const char *text, uint64_t least,
                         uint64_t most);
double argument_real(struct argp_state *state, int key, const char *text,
                     double most); /* above 0 */
unsigned argument_name(struct argp_state *state, int key, const char *text, name_function *name);

/* Return lists of up to NUMBERS of them; for names, their indices. */
struct numbers argument_numbers(struct argp_state *state, int key, const char *text, uint64_t least,
                                uint64_t most);
struct numbers argument_names(struct argp_state *state, int key, const char *text,
                              name_function *name);

/* Ends the program, because the text is not `wanted`. */
void argument_refuse(struct argp_state *state, int key, const char *text, const char *wanted);

/* Returns the long name of an option, or NULL if no option has that key. */
const char *argument_option(const struct argp_state *state, int key);

#endif /* BENCH_ARGUMENTS_H */
