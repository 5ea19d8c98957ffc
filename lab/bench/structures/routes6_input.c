/* SPDX-License-Identifier: MIT */
/* IPv6 routes and addresses made from a fixed seed (routes6_input.h). All prefixes lie in the
 * first 64 bits. */
#include "routes6_input.h"

#include <endian.h>
#include <string.h>

#include "number_set.h"

struct bench6_route *bench6_routes;
struct bench6_address *bench6_drawn, *bench6_uniform;

/* Number of prefixes of each length, out of 10,000; the rest is /48. */
static const unsigned short share[48] = {
    [20] = 8,   [22] = 6,   [24] = 14,   [26] = 7,   [27] = 8,   [28] = 70,  [29] = 250,
    [30] = 70,  [31] = 30,  [32] = 1180, [33] = 160, [34] = 130, [35] = 80,  [36] = 420,
    [37] = 60,  [38] = 90,  [39] = 70,   [40] = 800, [41] = 80,  [42] = 200, [43] = 110,
    [44] = 900, [45] = 170, [46] = 330,  [47] = 310,
};
#define LENGTH_FIRST 20u
#define LENGTH_BLOCK 32u /* longer prefixes are inside one of at most this length */
#define LENGTH_LAST  48u

/* Blocks from which the registries allocate, and their shares in percent. */
static const struct {
    uint64_t address;
    unsigned length, share;
} regions[] = {
    {UINT64_C(0x2001) << 48, 16, 10}, {UINT64_C(0x2400) << 48, 12, 25},
    {UINT64_C(0x2600) << 48, 12, 20}, {UINT64_C(0x2800) << 48, 12, 10},
    {UINT64_C(0x2a00) << 48, 12, 30}, {UINT64_C(0x2c00) << 48, 12, 5},
};

static uint64_t random_state;
static uint64_t *prefixes;     /* the first bits, and the length in the last ones */
static struct number_set seen; /* prefixes made so far */

static uint64_t bits_behind(unsigned length)
{
    return next_random(&random_state) & UINT64_MAX >> length;
}

static uint64_t prefix_of(uint64_t address, unsigned length)
{
    return (address & ~(UINT64_MAX >> length)) | length;
}

static uint64_t in_a_region(unsigned length)
{
    unsigned choice = (unsigned)below(next_random(&random_state), 100), i = 0;

    while (choice >= regions[i].share)
        choice -= regions[i++].share;
    return prefix_of(regions[i].address | bits_behind(regions[i].length), length);
}

/* Makes a prefix in a block; earlier blocks get more. Of 5 prefixes, 3 are among the first 16 of
 * their length in the block. */
static uint64_t in_a_block(unsigned length, uint64_t blocks)
{
    const uint64_t first = below(next_random(&random_state), blocks);
    const uint64_t block = prefixes[below(next_random(&random_state), first + 1)];
    const unsigned outer = block & 63;
    uint64_t inside = bits_behind(outer);

    if (below(next_random(&random_state), 5) < 3)
        inside = (inside & 15) << (64 - length) & UINT64_MAX >> outer;
    return prefix_of((block - outer) | inside, length);
}

/* Makes the shortest first. If one length has too few possible prefixes, longer ones are made
 * instead. */
static void make_prefixes(uint64_t size)
{
    uint64_t count = 0, blocks = 0, wanted = 0;

    for (unsigned length = LENGTH_FIRST; length <= LENGTH_LAST; length++) {
        wanted = length < LENGTH_LAST ? wanted + share[length] * size / 10000 : size;
        for (unsigned tries = 0; count < wanted && tries < 1000; tries++) {
            prefixes[count] =
                length > LENGTH_BLOCK && blocks ? in_a_block(length, blocks) : in_a_region(length);
            if (number_set_add(&seen, prefixes[count])) {
                count++;
                tries = 0;
            }
        }
        if (length == LENGTH_BLOCK)
            blocks = count;
    }
    if (count < size)
        abort();
}

static void shuffle(uint64_t size)
{
    for (uint64_t i = size; i > 1; i--) {
        uint64_t other = below(next_random(&random_state), i);
        uint64_t kept = prefixes[i - 1];

        prefixes[i - 1] = prefixes[other];
        prefixes[other] = kept;
    }
}

static void put(unsigned char *bytes, uint64_t high, uint64_t low)
{
    const uint64_t both[] = {htobe64(high), htobe64(low)};

    memcpy(bytes, both, sizeof both);
}

static void make_addresses(uint64_t size)
{
    for (uint64_t i = 0; i < INPUT_ADDRESSES; i++) {
        const uint64_t prefix = prefixes[below(next_random(&random_state), size)];

        put(bench6_drawn[i].bytes, (prefix - (prefix & 63)) | bits_behind(prefix & 63),
            next_random(&random_state));
        put(bench6_uniform[i].bytes, UINT64_C(1) << 61 | bits_behind(3),
            next_random(&random_state));
    }
}

void bench6_prepare(void)
{
    const uint64_t size = subject_size;

    random_state = 4711;
    seen = number_set_make(size);
    prefixes = calloc(size, sizeof *prefixes);
    bench6_routes = calloc(size, sizeof *bench6_routes);
    bench6_drawn = calloc(INPUT_ADDRESSES, sizeof *bench6_drawn);
    bench6_uniform = calloc(INPUT_ADDRESSES, sizeof *bench6_uniform);
    if (!prefixes || !bench6_routes || !bench6_drawn || !bench6_uniform)
        abort();
    make_prefixes(size);
    shuffle(size);
    for (uint64_t i = 0; i < size; i++) {
        bench6_routes[i].length = prefixes[i] & 63;
        put(bench6_routes[i].address, prefixes[i] - bench6_routes[i].length, 0);
    }
    make_addresses(size);
    free(seen.slots);
    free(prefixes);
}
