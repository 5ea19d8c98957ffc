/* SPDX-License-Identifier: MIT */
/*
 * Maps numbers to keys. A subject that supports both kinds is compiled twice: for 64-bit numbers,
 * and with STRING_KEYS for strings like paths of URLs: 16 to 60 bytes that begin alike and differ
 * at the end. A string is made for each operation, at the same cost for all subjects, because a
 * program has the key of a lookup in the cache.
 */
#ifndef BENCH_STRUCTURES_KEYS_H
#define BENCH_STRUCTURES_KEYS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "subject.h"

#ifdef STRING_KEYS

#define SUBJECT(name) subject_##name##_strings

struct bench_key {
    unsigned char length;
    char text[63]; /* 0 after `length` bytes */
};
typedef struct bench_key bench_key;

static inline bench_key key_of(uint64_t number)
{
    static const char folders[4][53] = {
        "/static/images/products/gallery/2026/11/large/photo-",
        "/api/v2/accounts/settings/notifications/devices/id/-",
        "/wiki/History_of_computing/Concurrent_structures/rev",
        "/downloads/archive/releases/stable/packages/checksum",
    };
    const uint64_t mixed = hash_of(number);
    bench_key key = {.length = (unsigned char)(16 + mixed % 45)};
    char *end = key.text + key.length;

    memcpy(key.text, folders[mixed >> 62], key.length - 8u);
    for (unsigned i = 0; i < 8; i++)
        *--end = "0123456789abcdef"[number >> 4 * i & 15];
    return key;
}

static inline bool key_same(const bench_key *a, const bench_key *b)
{
    return !memcmp(a, b, 1u + a->length);
}

static inline uint64_t key_mix(const bench_key *key)
{
    uint64_t hash = 0, word;

    for (unsigned i = 0; i < 1u + key->length; i += 8) {
        memcpy(&word, (const char *)key + i, sizeof word);
        hash = (hash ^ word) * UINT64_C(0xd6e8feb86659fd93);
        hash ^= hash >> 32;
    }
    return hash;
}

#else

#define SUBJECT(name) subject_##name

typedef uint64_t bench_key;

static inline bench_key key_of(uint64_t number)
{
    return number;
}

static inline bool key_same(const bench_key *a, const bench_key *b)
{
    return *a == *b;
}

/* Same as prudence_hash_mix. */
static inline uint64_t key_mix(const bench_key *key)
{
    return mix_of(*key);
}

#endif

/* For tables that use the lowest bits: prudence_hash's spread of key_mix, with its highest bits
 * mixed into the low ones. */
static inline uint64_t key_hash(const bench_key *key)
{
    return spread_of(key_mix(key));
}

/* For maps: numbers are far from each other. */
static inline bench_key place_of(uint64_t number)
{
#ifdef STRING_KEYS
    return key_of(number);
#else
    return hash_of(number);
#endif
}

#endif /* BENCH_STRUCTURES_KEYS_H */
