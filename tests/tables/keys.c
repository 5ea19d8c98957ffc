/* SPDX-License-Identifier: MIT */
/* See keys.h. */
#include "tables/keys.h"

#include "support/random.h"
#include "support/routes_test.h"

uint64_t key_numbers[KEYS_MOST];
struct key_string key_strings[KEYS_MOST];
struct prudence_routes_prefix key_prefixes[2][KEYS_MOST];
unsigned key_number_count, key_string_count, key_prefix_counts[2];

static uint64_t random_state = 7;

static unsigned below(unsigned bound)
{
    return random_below(&random_state, bound);
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static int compare_strings(const void *a, const void *b)
{
    const struct key_string *left = a, *right = b;
    int order = memcmp(left->bytes, right->bytes, min_size(left->length, right->length));

    return order ? order : (left->length > right->length) - (left->length < right->length);
}

/* Sorts, and returns how many differ. */
static unsigned sort(void *keys, unsigned count, size_t size,
                     int (*compare)(const void *, const void *))
{
    char *const first = keys;
    unsigned kept = 0;

    qsort(keys, count, size, compare);
    for (unsigned i = 0; i < count; i++)
        if (!kept || compare(first + (kept - 1) * size, first + i * size))
            memmove(first + kept++ * size, first + i * size, size);
    return kept;
}

void keys_add_number(uint64_t number)
{
    key_numbers[key_number_count++] = number;
}

/* The extremes, neighbours, every length of a common prefix, all values of a byte in every
 * place. */
static void make_numbers(void)
{
    for (uint64_t i = 0; i < 300; i++) {
        keys_add_number(i);
        keys_add_number(UINT64_MAX - i);
        keys_add_number(UINT64_C(0x4242424242424200) + i);
        keys_add_number(i << 33);
        keys_add_number(i * UINT64_C(0x9e3779b97f4a7c15));
        keys_add_number((i % 20) << 24 | (i / 20) << 8);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        keys_add_number(UINT64_C(1) << bit);
        keys_add_number(UINT64_C(0x1122334455667788) ^ UINT64_C(1) << bit);
    }
}

void keys_add_string(const void *bytes, size_t length)
{
    memcpy(key_strings[key_string_count].bytes, bytes, length);
    key_strings[key_string_count++].length = length;
}

/* The empty one, prefixes of others, zeros, long common prefixes of every length, all bytes, every
 * length up to the most. */
static void make_strings(void)
{
    uint8_t bytes[KEY_LENGTH_MOST];

    for (unsigned length = 0; length <= 40; length++) {
        memset(bytes, 'a', sizeof bytes);
        keys_add_string(bytes, length);
        bytes[length / 2] = 'b';
        keys_add_string(bytes, length);
        memset(bytes, 0, sizeof bytes);
        keys_add_string(bytes, length);
        memset(bytes, 255, sizeof bytes);
        keys_add_string(bytes, length);
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        bytes[0] = (uint8_t)byte;
        keys_add_string(bytes, 1);
        memcpy(bytes, "http://example.org/", 19);
        bytes[19] = (uint8_t)byte;
        keys_add_string(bytes, 20);
        keys_add_string(bytes, 19 + byte % 30);
    }
    for (unsigned i = 0; i < 600; i++) {
        size_t length = below(12);

        for (unsigned k = 0; k < length; k++)
            bytes[k] = i % 2 ? (uint8_t)below(3) : (uint8_t) "xyz/"[below(4)];
        keys_add_string(bytes, length);
    }
    memset(bytes, 'z', sizeof bytes);
    for (unsigned i = 0; i < 40; i++) { /* entries of every size, one larger than a small slab */
        bytes[3] = (uint8_t)i;
        keys_add_string(bytes, i * (KEY_LENGTH_MOST - 4) / 39 + 4);
    }
}

void keys_add_prefix(unsigned family, struct prudence_routes_prefix prefix)
{
    prefix_trim(&prefix);
    key_prefixes[family][key_prefix_counts[family]++] = prefix;
}

/* Few different bytes, and every length, so that most prefixes lie within others. */
static void make_prefixes(unsigned family)
{
    static const uint8_t bytes[] = {0x00, 0x00, 0x00, 0xff, 0xff, 0x80, 0x01, 0x20};
    static const uint8_t likely[] = {0, 1, 7, 8, 12, 13, 18, 19, 20, 24, 25, 31, 32};
    const unsigned most = family == PRUDENCE_ROUTES_IPV6 ? 128 : 32;

    for (unsigned i = 0; i < 2000; i++) {
        struct prudence_routes_prefix prefix = {.length = below(most + 1)};

        if (i % 4 == 0)
            prefix.length = likely[below(sizeof likely)] * (most / 32);
        if (i % 3 == 2)
            memcpy(prefix.address, key_prefixes[family][below(i)].address, sizeof prefix.address);
        for (unsigned byte = 0; i % 3 < 2 && byte < most / 8; byte++)
            prefix.address[byte] = below(5) ? bytes[below(sizeof bytes)] : (uint8_t)below(256);
        keys_add_prefix(family, prefix);
    }
}

static bool made;

void keys_clear(void)
{
    made = true;
    key_number_count = key_string_count = key_prefix_counts[0] = key_prefix_counts[1] = 0;
}

void keys_sort(void)
{
    key_number_count = sort(key_numbers, key_number_count, sizeof key_numbers[0], compare_numbers);
    key_string_count = sort(key_strings, key_string_count, sizeof key_strings[0], compare_strings);
    for (unsigned family = 0; family < 2; family++)
        key_prefix_counts[family] = sort(key_prefixes[family], key_prefix_counts[family],
                                         sizeof key_prefixes[0][0], compare_prefixes);
}

void keys_make(void)
{
    if (made)
        return;
    made = true;
    make_numbers();
    make_strings();
    make_prefixes(PRUDENCE_ROUTES_IPV4);
    make_prefixes(PRUDENCE_ROUTES_IPV6);
    keys_sort();
}

static unsigned key_among(const void *key, const void *keys, unsigned count, size_t size,
                          int (*compare)(const void *, const void *))
{
    const char *found = bsearch(key, keys, count, size, compare);

    assert_non_null(found);
    return (unsigned)((size_t)(found - (const char *)keys) / size);
}

unsigned key_of_number(uint64_t number)
{
    return key_among(&number, key_numbers, key_number_count, sizeof number, compare_numbers);
}

unsigned key_of_bytes(const void *bytes, size_t length)
{
    struct key_string string = {.length = length};

    assert_true(length <= sizeof string.bytes);
    memcpy(string.bytes, bytes, length);
    return key_among(&string, key_strings, key_string_count, sizeof string, compare_strings);
}

unsigned key_of_prefix(unsigned family, const struct prudence_routes_prefix *prefix)
{
    return key_among(prefix, key_prefixes[family], key_prefix_counts[family], sizeof *prefix,
                     compare_prefixes);
}
