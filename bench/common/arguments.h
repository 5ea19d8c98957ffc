/* SPDX-License-Identifier: MIT */
/* Numbers and names as a person types them on a command line, alone or with commas between. */
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

/* "512", "2G" (K, M, G: powers of 1,024) or "2^9", from `least` to `most`. False: it is not one. */
bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value);

/* The name of that index; NULL behind the last one. */
typedef const char *name_function(unsigned index);

/* The index of a name. False: there is none. */
bool name_parse(const char *text, name_function *name, unsigned *index);

/*
 * For parsers of argp: the value of the option `key`, or of an argument that is none (ARGP_KEY_ARG). A text that is not
 * what is wanted ends the program, with a message that names the option, the text, and what is wanted.
 */
uint64_t argument_number(struct argp_state *state, int key, const char *text, uint64_t least,
                         uint64_t most);
double argument_real(struct argp_state *state, int key, const char *text,
                     double most); /* above 0 */
unsigned argument_name(struct argp_state *state, int key, const char *text, name_function *name);

/* Lists of them, up to NUMBERS long; of names, their indices. */
struct numbers argument_numbers(struct argp_state *state, int key, const char *text, uint64_t least,
                                uint64_t most);
struct numbers argument_names(struct argp_state *state, int key, const char *text,
                              name_function *name);

/* The end of the program: the text is not `wanted`. */
void argument_refuse(struct argp_state *state, int key, const char *text, const char *wanted);

/* The long name of an option; NULL: there is none with that key. */
const char *argument_option(const struct argp_state *state, int key);

#endif /* BENCH_ARGUMENTS_H */
