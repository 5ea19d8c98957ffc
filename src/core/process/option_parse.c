/* SPDX-License-Identifier: MIT */
/* Reads the values of options (option.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "process/option.h"

const char *const option_switches[] = {"0", "1", NULL};

/* Parses a number with one of the suffixes. */
static bool parse_number(const char *text, const char *const *suffixes, const uint64_t *units,
                         uint64_t *value)
{
    char *end;
    unsigned long long number;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno)
        return false;
    for (unsigned i = 0; suffixes[i]; i++)
        if (strcmp(end, suffixes[i]) == 0)
            return checked_multiply(number, units[i], value);
    return false;
}

bool option_parse_bytes(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", "K", "M", "G", NULL};
    static const uint64_t units[] = {1, 1 << 10, 1 << 20, 1 << 30};

    (void)option;
    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

bool option_parse_time(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"ms", "us", "s", "", NULL};
    static const uint64_t units[] = {1000000, 1000, 1000000000, 1000000};

    (void)option;
    return parse_number(text, suffixes, units, value) && *value <= INT64_MAX;
}

bool option_parse_count(const struct option *option, const char *text, uint64_t *value)
{
    static const char *const suffixes[] = {"", NULL};
    static const uint64_t units[] = {1};

    return parse_number(text, suffixes, units, value) && *value <= option->most;
}

bool option_parse_choice(const struct option *option, const char *text, uint64_t *value)
{
    for (unsigned i = 0; option->choices[i]; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}
