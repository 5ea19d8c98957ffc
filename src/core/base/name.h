/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Bounded copies of the names that callers give, never cut within a UTF-8 character. */
#ifndef BASE_NAME_H
#define BASE_NAME_H

#include "base/base.h"

static inline bool is_utf8_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Copies a name to `to`, which has `size` zeroed bytes. */
static inline void name_copy(char *to, size_t size, const char *from)
{
    size_t length = 0;

    while (length < size - 1 && from[length])
        length++;
    if (is_utf8_continuation(from[length])) { /* the cut is within a character */
        while (length && is_utf8_continuation(from[length]))
            length--;
    }
    for (size_t i = 0; i < length; i++)
        to[i] = from[i];
}

#endif /* BASE_NAME_H */
