/* SPDX-License-Identifier: MIT */
/*
 * Keys of ordered maps: byte strings, compared as memcmp does; a string that begins another one is
 * below it. A number stands for the string of its 8 bytes, the highest first, but is stored as a
 * number.
 */
#ifndef TABLES_MAP_KEY_H
#define TABLES_MAP_KEY_H

#include <prudence/map.h>

#include "base/base.h"

struct map_key {
    const uint8_t *bytes; /* NULL if the key is a number */
    size_t length;
    uint64_t number;
};

static inline struct map_key map_key_of_number(uint64_t number)
{
    return (struct map_key){.length = sizeof number, .number = number};
}

static inline struct map_key map_key_of_bytes(const void *bytes, size_t length)
{
    if (!bytes && length)
        return (struct map_key){.length = 0}; /* no map has this key */
    return (struct map_key){.bytes = length ? bytes : (const void *)"", .length = length};
}

/* Returns the key of an object; `bytes` says of which kind. */
static inline struct map_key map_key_of(const struct prudence_map_node *node, bool bytes)
{
    const struct prudence_map_bytes *string = (const struct prudence_map_bytes *)node;

    if (!bytes)
        return map_key_of_number(node->key);
    return map_key_of_bytes((const void *)(uintptr_t)node->key, string->length);
}

/* Returns 8 bytes, the first one highest. */
static inline uint64_t map_key_load(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(word) : word;
}

/* Returns the 8 bytes from `from` on, the first one highest, with zeros after the end. `from` is
 * not after the end. */
static inline uint64_t map_key_window(const struct map_key *key, size_t from)
{
    const size_t rest = key->length - from;
    uint64_t window = 0;

    if (!key->bytes)
        return from < sizeof window ? key->number << 8 * from : 0;
    if (rest >= sizeof window)
        return map_key_load(key->bytes + from);
    if (likely(rest && key->length >= sizeof window))
        return map_key_load(key->bytes + key->length - sizeof window) << (64 - 8 * rest);
    for (unsigned i = 0; i < rest; i++)
        window |= (uint64_t)key->bytes[from + i] << (56 - 8 * i);
    return window;
}

/* Returns less than 0 if a is below b, and 0 if they are equal. */
static inline int map_key_compare(const struct map_key *a, const struct map_key *b)
{
    int order;

    if (!a->bytes)
        return a->number < b->number ? -1 : a->number > b->number;
    order = __builtin_memcmp(a->bytes, b->bytes, min_size(a->length, b->length));
    if (order)
        return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

/* Returns whether the keys are equal; for numbers, without a call. */
static inline bool map_key_is(const struct map_key *a, const struct map_key *b)
{
    if (!a->bytes)
        return a->number == b->number;
    return a->length == b->length && !__builtin_memcmp(a->bytes, b->bytes, a->length);
}

/* Returns how many bytes the keys share from `from` on. Both have at least `from` bytes. */
static inline size_t map_key_common(const struct map_key *a, const struct map_key *b, size_t from)
{
    const size_t shorter = min_size(a->length, b->length);
    size_t at = from;

    while (at < shorter) {
        uint64_t differ = map_key_window(a, at) ^ map_key_window(b, at);

        if (differ) {
            at += (size_t)__builtin_clzll(differ) / 8;
            break;
        }
        at += sizeof differ;
    }
    return min_size(at, shorter) - from;
}

#endif /* TABLES_MAP_KEY_H */
