/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "arguments.h"

#include <ctype.h>
#include <errno.h>
#include <prudence/prudence.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned suffix_shift(const char *suffix)
{
    static const char suffixes[] = "KMG";
    const char *found = *suffix ? strchr(suffixes, toupper((unsigned char)*suffix)) : NULL;

    return found ? 10 * (unsigned)(found - suffixes + 1) : 0;
}

/* Parses digits, and an optional suffix. */
static bool digits_parse(const char *text, uint64_t *value)
{
    unsigned shift;
    char *end;

    errno = 0;
    *value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || errno)
        return false;
    shift = suffix_shift(end);
    if (shift)
        end++;
    if (*end || *value > UINT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    bool power = !strncmp(text, "2^", 2);

    if (!digits_parse(power ? text + 2 : text, value) || (power && *value > 63))
        return false;
    if (power)
        *value = UINT64_C(1) << *value;
    return *value >= least && *value <= most;
}

bool name_parse(const char *text, name_function *name, unsigned *index)
{
    for (*index = 0; name(*index); ++*index) {
        if (!strcmp(name(*index), text))
            return true;
    }
    return false;
}

/* --------------------------------------------------------------------------- in parsers of argp */

static void print_version(FILE *file, struct argp_state *state)
{
    (void)state;
    fprintf(file, "%s %s\n", program_invocation_short_name, PRUDENCE_VERSION);
}

/* Gives each program that links this file the option --version. */
void (*argp_program_version_hook)(FILE *file, struct argp_state *state) = print_version;

static const char *option_name(const struct argp *argp, int key)
{
    const struct argp_option *option = argp->options;
    const struct argp_child *child = argp->children;
    const char *name = NULL;

    for (; option && (option->name || option->doc); option++) {
        if (option->name && option->key == key)
            return option->name;
    }
    for (; child && child->argp && !name; child++)
        name = option_name(child->argp, key);
    return name;
}

const char *argument_option(const struct argp_state *state, int key)
{
    return key == ARGP_KEY_ARG ? NULL : option_name(state->root_argp, key);
}

void argument_refuse(struct argp_state *state, int key, const char *text, const char *wanted)
{
    const char *name = argument_option(state, key);

    argp_error(state, "%s%s%s'%s' is not %s", name ? "--" : "", name ? name : "", name ? ": " : "",
               text, wanted);
}

static void refuse_number(struct argp_state *state, int key, const char *text, const char *what,
                          uint64_t least, uint64_t most)
{
    char wanted[96];

    snprintf(wanted, sizeof wanted, "%s from %llu to %llu", what, (unsigned long long)least,
             (unsigned long long)most);
    argument_refuse(state, key, text, wanted);
}

uint64_t argument_number(struct argp_state *state, int key, const char *text, uint64_t least,
                         uint64_t most)
{
    uint64_t value;

    if (!number_parse(text, least, most, &value))
        refuse_number(state, key, text, "a number", least, most);
    return value;
}

double argument_real(struct argp_state *state, int key, const char *text, double most)
{
    char *end, wanted[64];
    double value = strtod(text, &end);

    snprintf(wanted, sizeof wanted, "a number above 0, up to %.0f", most);
    if (end == text || *end || !(value > 0 && value <= most))
        argument_refuse(state, key, text, wanted);
    return value;
}

/* Formats "red, green or blue". */
static const char *known_names(name_function *name, char *text, size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; name(i) && used < size; i++) {
        const char *between = name(i + 1) ? ", " : " or ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? between : "", name(i));
    }
    return text;
}

unsigned argument_name(struct argp_state *state, int key, const char *text, name_function *name)
{
    char known[512] = "";
    unsigned index;

    if (!name_parse(text, name, &index))
        argument_refuse(state, key, text, known_names(name, known, sizeof known));
    return index;
}

struct numbers argument_numbers(struct argp_state *state, int key, const char *text, uint64_t least,
                                uint64_t most)
{
    char *copy = strdup(text), *rest = copy, *one;
    struct numbers numbers = {.count = 0};

    while ((one = strsep(&rest, ","))) {
        if (numbers.count == NUMBERS ||
            !number_parse(one, least, most, &numbers.value[numbers.count++]))
            refuse_number(state, key, text, "a list of numbers", least, most);
    }
    free(copy);
    return numbers;
}

struct numbers argument_names(struct argp_state *state, int key, const char *text,
                              name_function *name)
{
    char *copy = strdup(text), *rest = copy, *one;
    struct numbers indices = {.count = 0};

    while ((one = strsep(&rest, ","))) {
        if (indices.count < NUMBERS)
            indices.value[indices.count++] = argument_name(state, key, one, name);
        else
            argument_refuse(state, key, text, "a list of at most 32 names");
    }
    free(copy);
    return indices;
}
