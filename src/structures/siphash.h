/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3, a hash of byte strings with a secret key. An attacker who does not know the key
 * cannot find strings whose hashes collide, and does not learn the key from chance collisions.
 * Written after J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
 * 2012. This member of the family is meant for hash tables; it takes 1 round for each 8 bytes and 3
 * at the end.
 */
#ifndef STRUCTURES_SIPHASH_H
#define STRUCTURES_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t words[2];
};

struct siphash_state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t siphash_rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void siphash_round(struct siphash_state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
    s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
    s->v0 = siphash_rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
    s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
    s->v2 = siphash_rotate(s->v2, 32);
}

static inline struct siphash_state siphash_begin(const struct siphash_key *key)
{
    return (struct siphash_state){.v0 = key->words[0] ^ UINT64_C(0x736f6d6570736575),
                                  .v1 = key->words[1] ^ UINT64_C(0x646f72616e646f6d),
                                  .v2 = key->words[0] ^ UINT64_C(0x6c7967656e657261),
                                  .v3 = key->words[1] ^ UINT64_C(0x7465646279746573)};
}

static inline void siphash_word(struct siphash_state *s, uint64_t word)
{
    s->v3 ^= word;
    siphash_round(s);
    s->v0 ^= word;
}

static inline uint64_t siphash_end(struct siphash_state *s)
{
    s->v2 ^= 0xff;
    siphash_round(s);
    siphash_round(s);
    siphash_round(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline uint64_t siphash_load(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* Returns the bytes after the last whole word, the first one lowest. */
static inline uint64_t siphash_rest(const uint8_t *bytes, size_t length)
{
    const size_t rest = length % 8;
    uint64_t word = 0;

    if (rest && length > 8)
        return siphash_load(bytes + length - 8) >> (64 - 8 * rest);
    for (size_t i = 0; i < rest; i++)
        word |= (uint64_t)bytes[length - rest + i] << 8 * i;
    return word;
}

static inline uint64_t siphash_bytes(const struct siphash_key *key, const uint8_t *bytes,
                                     size_t length)
{
    struct siphash_state state = siphash_begin(key);

    for (size_t i = 0; i + 8 <= length; i += 8)
        siphash_word(&state, siphash_load(bytes + i));
    siphash_word(&state, siphash_rest(bytes, length) | (uint64_t)length << 56);
    return siphash_end(&state);
}

/* Hashes the 8 bytes of the number, the lowest first. */
static inline uint64_t siphash_number(const struct siphash_key *key, uint64_t number)
{
    struct siphash_state state = siphash_begin(key);

    siphash_word(&state, number);
    siphash_word(&state, (uint64_t)sizeof number << 56);
    return siphash_end(&state);
}

#endif /* STRUCTURES_SIPHASH_H */
