/* SPDX-License-Identifier: MIT */
/*
 * SipHash-1-3, a hash of byte strings and numbers with a secret. An attacker who does not know the
 * secret cannot find keys whose hashes collide, and does not learn the secret from chance
 * collisions. Written after J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF",
 * INDOCRYPT 2012. This member of the family is meant for hash tables; it takes 1 round for each 8
 * bytes and 3 at the end. <prudence/hash.h> includes this header; <prudence/hash_values.h> hashes
 * its keys in the same way.
 *
 *     static struct prudence_hash_secret secret;
 *
 *     prudence_hash_draw_secret(&secret);    once, before the first hash
 *     ...
 *     hash = prudence_hash_bytes(&secret, name, strlen(name));
 *
 * All hashes of a table are made with one secret, which does not change while the table has
 * objects. Hashes are for the memory of one process (and its forked children): those of another
 * secret differ.
 */
#ifndef PRUDENCE_HASH_BYTES_H
#define PRUDENCE_HASH_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any value is a secret; a constant one hashes as well, but protects from no attacker. */
struct prudence_hash_secret {
    uint64_t words[2];
};

/*
 * Fills `secret` with random words from the system. If the system refuses getrandom, they are those
 * that the kernel gave the process at its start. Never fails. Not async-signal-safe. Cost: a system
 * call.
 */
PRUDENCE_API void prudence_hash_draw_secret(struct prudence_hash_secret *secret);

/* ------------------------------------------------------------------------------------ (private) */

struct prudence_siphash_ {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t prudence_siphash_rotate_(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void prudence_siphash_round_(struct prudence_siphash_ *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = prudence_siphash_rotate_(s->v1, 13) ^ s->v0;
    s->v3 = prudence_siphash_rotate_(s->v3, 16) ^ s->v2;
    s->v0 = prudence_siphash_rotate_(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = prudence_siphash_rotate_(s->v1, 17) ^ s->v2;
    s->v3 = prudence_siphash_rotate_(s->v3, 21) ^ s->v0;
    s->v2 = prudence_siphash_rotate_(s->v2, 32);
}

static inline void prudence_siphash_begin_(struct prudence_siphash_ *s,
                                           const struct prudence_hash_secret *secret)
{
    s->v0 = secret->words[0] ^ UINT64_C(0x736f6d6570736575);
    s->v1 = secret->words[1] ^ UINT64_C(0x646f72616e646f6d);
    s->v2 = secret->words[0] ^ UINT64_C(0x6c7967656e657261);
    s->v3 = secret->words[1] ^ UINT64_C(0x7465646279746573);
}

static inline void prudence_siphash_word_(struct prudence_siphash_ *s, uint64_t word)
{
    s->v3 ^= word;
    prudence_siphash_round_(s);
    s->v0 ^= word;
}

static inline uint64_t prudence_siphash_end_(struct prudence_siphash_ *s)
{
    s->v2 ^= 0xff;
    prudence_siphash_round_(s);
    prudence_siphash_round_(s);
    prudence_siphash_round_(s);
    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

static inline uint64_t prudence_siphash_load_(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* Returns the bytes after the last whole word, the first one lowest. */
static inline uint64_t prudence_siphash_rest_(const uint8_t *bytes, size_t length)
{
    const size_t rest = length % 8;
    uint64_t word = 0;

    if (rest && length > 8)
        return prudence_siphash_load_(bytes + length - 8) >> (64 - 8 * rest);
    for (size_t i = 0; i < rest; i++)
        word |= PRUDENCE_CONVERT(uint64_t, bytes[length - rest + i]) << 8 * i;
    return word;
}

/* -------------------------------------------------------------------------------------- hashing */

/*
 * Hashes `length` bytes. `bytes` may be NULL if there are none. Async-signal-safe. Cost: 10 to 20
 * instructions for each 8 bytes, and about 50.
 */
PRUDENCE_INLINE uint64_t prudence_hash_bytes(const struct prudence_hash_secret *secret,
                                             const void *bytes, size_t length)
{
    const uint8_t *from = PRUDENCE_CAST(const uint8_t *, bytes);
    struct prudence_siphash_ state;

    prudence_siphash_begin_(&state, secret);
    for (size_t i = 0; i + 8 <= length; i += 8)
        prudence_siphash_word_(&state, prudence_siphash_load_(from + i));
    prudence_siphash_word_(&state, prudence_siphash_rest_(from, length) |
                                       PRUDENCE_CONVERT(uint64_t, length) << 56);
    return prudence_siphash_end_(&state);
}

/* Hashes the 8 bytes of a number, the lowest first. Async-signal-safe. */
PRUDENCE_INLINE uint64_t prudence_hash_number(const struct prudence_hash_secret *secret,
                                              uint64_t number)
{
    struct prudence_siphash_ state;

    prudence_siphash_begin_(&state, secret);
    prudence_siphash_word_(&state, number);
    prudence_siphash_word_(&state, UINT64_C(8) << 56);
    return prudence_siphash_end_(&state);
}

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_BYTES_H */
