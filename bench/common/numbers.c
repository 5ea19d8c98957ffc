/* SPDX-License-Identifier: MIT */
#include "numbers.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned suffix_shift(const char *suffix)
{
    static const char suffixes[] = "KMG";
    const char *found = *suffix ? strchr(suffixes, toupper((unsigned char)*suffix)) : NULL;

    return found ? 10 * (unsigned)(found - suffixes + 1) : 0;
}

bool number_parse(const char *text, uint64_t least, uint64_t most, uint64_t *value)
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
    return *value >= least && *value <= most;
}

bool numbers_parse(const char *text, uint64_t least, uint64_t most, struct numbers *numbers)
{
    numbers->count = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        char one[32];

        if (length >= sizeof one || numbers->count == NUMBERS)
            return false;
        snprintf(one, sizeof one, "%.*s", (int)length, text);
        if (!number_parse(one, least, most, &numbers->value[numbers->count++]))
            return false;
        if (!text[length])
            return true;
        text += length + 1;
    }
}

bool seconds_parse(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && !*end && *seconds > 0 && *seconds <= 86400;
}
