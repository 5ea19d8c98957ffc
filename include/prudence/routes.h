/* SPDX-License-Identifier: MIT */
/*
 * Routes: IPv4 or IPv6 prefixes with a value each, and for an address the value of the longest prefix that matches it.
 * Readers write nothing shared, take no lock, and do not wait, whatever writers do. A full table of the Internet is changed
 * while it is read: an update replaces one node of a few cache lines, and the old one is freed when its readers
 * have left. How it works and why: docs/adr/0070 and 0080. (P. McKenney, "Exploiting Deferred Destruction", 2004, sections 2.2.18
 * and 3.5, has routing tables as the example of readers to whom data may be stale for a moment.)
 *
 *     struct prudence_prefix prefix = {.address = {192, 0, 2, 0}, .length = 24};
 *     ...
 *     error = prudence_routes_add(routes, &prefix, next_hop);
 *     ...
 *     prudence_read_lock();
 *     next_hop = prudence_routes_lookup_ipv4(routes, &packet->destination);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions of <prudence/prudence.h>, and these:
 *  - Addresses: bytes as they stand in a packet, 4 or 16 of them, at any alignment.
 *  - Values: a pointer, or a number from 1 to 2^63 - 1. 0 says that there is none.
 *  - Sections: lookups are made inside a read-side section of the table's domain, or online in it; so are walks, which may
 *    span several. A value that points to something stays valid until the section ends. Updates need no section; make
 *    them outside, so that deferrals may wait when `latent_limit` is reached.
 *  - Ownership: what values point to is the caller's. What a value pointed to that was replaced or removed may
 *    be freed after a grace period only (prudence_free_deferred). The table allocates nodes, an index, and of IPv6 shortcuts.
 *  - Order: a reader that finds a value sees what it pointed to when it was added. For each address an update takes effect at one
 *    moment: a lookup has the answer before it or the answer behind it, and lookups of one address never go
 *    back. Once an update has returned, every lookup that begins afterwards sees it. While an update is under way, it may
 *    be seen at one address and not yet at another, also by two lookups in one section.
 *  - Signals: lookups, get and walks are async-signal-safe; nothing else is.
 *  - Fork: waits until no thread is inside an update. A child may read and update. What another thread was about to add or to
 *    defer is lost with that thread, in the child alone. After _Fork or clone, a child may read only.
 */
#ifndef PRUDENCE_ROUTES_H
#define PRUDENCE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <prudence/language.h>
#include <prudence/prudence.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first `length` bits of the address; all others are 0. Of IPv4 the first 4 bytes count. */
struct prudence_prefix {
    unsigned char address[16];
    unsigned length; /* 0 (all addresses) to 32, or to 128 */
};

/* ------------------------------------------------------- what inlined readers need (private) */

/*
 * The first word of a table: the address of its index, and in the lowest 6 bits how many bits of an address are the
 * number of a word there. That is a value (0: none), where no longer prefix is, or a node's address, negated: so its highest bit
 * is set, which no value has. A value stands in the table as it is, because tools that look for leaks know a pointer by that.
 *
 * A node stands for 6 bits of an address: prefixes of 6 lengths, and where longer ones are.
 *
 *   word 0    bit n: there is the prefix of the last 1 to 6 bits of n, without the highest one of n, which only
 *             says how many. Bit 0 is always set. It is for the longest prefix that is shorter than all these.
 *   word 1    bit s: behind these 6 bits, there is another node
 *   then      the addresses of those nodes, in the order of their bits,
 *             and the value of each prefix, likewise. (The shorter prefix may be none: 0.)
 *
 * Words 0 and 1 and the addresses' places never change in a node: another node takes its place. Values are stored to.
 */
struct prudence_routes {
    uintptr_t index;
    uintptr_t shortcuts; /* of IPv6, in the same form: how many bits are a slot's number */
};

#define PRUDENCE_ROUTES_NODE         (UINT64_C(1) << 63)
#define PRUDENCE_ROUTES_BITS_MASK    UINT64_C(63)
#define PRUDENCE_ROUTES_SKIP_SHIFT   56
#define PRUDENCE_ROUTES_ADDRESS_MASK (UINT64_MAX >> 8)

/* For 6 bits s of an address: which of the bits of word 0 match it. These are (64 + s) >> 1, (64 + s) >> 2, ... 1, 0. */
static inline uint64_t prudence_routes_matching_(uint64_t slot)
{
#define PRUDENCE_UP_(n, by) (UINT64_C(1) << ((64u + (n)) >> (by)))
#define PRUDENCE_ROW_(n)                                                                           \
    (PRUDENCE_UP_(n, 1) | PRUDENCE_UP_(n, 2) | PRUDENCE_UP_(n, 3) | PRUDENCE_UP_(n, 4) |           \
     PRUDENCE_UP_(n, 5) | PRUDENCE_UP_(n, 6) | PRUDENCE_UP_(n, 7))
#define PRUDENCE_ROWS4_(n)                                                                         \
    PRUDENCE_ROW_(n), PRUDENCE_ROW_((n) + 1), PRUDENCE_ROW_((n) + 2), PRUDENCE_ROW_((n) + 3)
#define PRUDENCE_ROWS16_(n)                                                                        \
    PRUDENCE_ROWS4_(n), PRUDENCE_ROWS4_((n) + 4), PRUDENCE_ROWS4_((n) + 8),                        \
        PRUDENCE_ROWS4_((n) + 12)
    static const uint64_t rows[64] = {PRUDENCE_ROWS16_(0), PRUDENCE_ROWS16_(16),
                                      PRUDENCE_ROWS16_(32), PRUDENCE_ROWS16_(48)};
#undef PRUDENCE_ROWS16_
#undef PRUDENCE_ROWS4_
#undef PRUDENCE_ROW_
#undef PRUDENCE_UP_

    return rows[slot];
}

/* On x86-64 the instruction, whatever the program is compiled for: no table is made on a processor without. */
static inline uint64_t prudence_routes_ones_(uint64_t bits)
{
#if defined(__x86_64__) && !defined(__POPCNT__)
    uint64_t ones;

    __asm__("popcnt %1, %0" : "=r"(ones) : "rm"(bits) : "cc");
    return ones;
#else
    return PRUDENCE_CONVERT(uint64_t, __builtin_popcountll(bits));
#endif
}

/* Of the bits below this one, how many are set. */
static inline uint64_t prudence_routes_rank_(uint64_t bits, uint64_t bit)
{
    return prudence_routes_ones_(bits & ((UINT64_C(1) << bit) - 1));
}

/* Where in the node the value is that matches these 6 bits. */
static inline const uint64_t *prudence_routes_match_(const uint64_t *node, uint64_t slot)
{
    const uint64_t bit =
        63 ^ PRUDENCE_CONVERT(uint64_t, __builtin_clzll(node[0] & prudence_routes_matching_(slot)));

    return node + 2 + prudence_routes_ones_(node[1]) + prudence_routes_rank_(node[0], bit);
}

/* `address`: left-aligned in high and low. Of IPv4. */
static inline uintptr_t prudence_routes_lookup_(const struct prudence_routes *table, uint64_t high,
                                                uint64_t low)
{
    const uintptr_t index = __atomic_load_n(&table->index, __ATOMIC_CONSUME);
    const uint64_t bits = index & PRUDENCE_ROUTES_BITS_MASK;
    uint64_t word = __atomic_load_n(
        PRUDENCE_CAST(const uint64_t *, index & ~PRUDENCE_ROUTES_BITS_MASK) + (high >> (64 - bits)),
        __ATOMIC_CONSUME);

    if (word & PRUDENCE_ROUTES_NODE) {
        const uint64_t *node = PRUDENCE_CAST(const uint64_t *, 0 - word);

        high = high << bits | low >> (64 - bits);
        low <<= bits;
        while (node[1] >> (high >> 58) & 1) {
            const uint64_t *place = node + 2 + prudence_routes_rank_(node[1], high >> 58);
            const uint64_t below = __atomic_load_n(place, __ATOMIC_CONSUME);

            node = PRUDENCE_CAST(const uint64_t *, below);
            high = high << 6 | low >> 58;
            low <<= 6;
        }
        word = __atomic_load_n(prudence_routes_match_(node, high >> 58), __ATOMIC_CONSUME);
    }
    return word;
}

/* Which slot has the node that these first 31 bits lead to, if any has. */
static inline uint64_t prudence_routes_shortcut_(uint64_t high, uint64_t bits)
{
    return (high >> 33) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

/*
 * Of IPv6, where a node may hang several levels below another one. The word in front of it has the bits of an address that lead to
 * it, the last 64 of them; the highest byte of its address in the node above says how many of those bits no node has
 * looked at. If they are others, the answer is what is shorter than its prefixes.
 *
 * A slot has a node's address, with the number of all bits that lead to it in the highest byte: more than 30, at most 61.
 */
static inline uintptr_t prudence_routes_lookup_far_(const struct prudence_routes *table,
                                                    uint64_t high, uint64_t low)
{
    const uintptr_t shortcuts = __atomic_load_n(&table->shortcuts, __ATOMIC_CONSUME);
    uint64_t word =
        __atomic_load_n(PRUDENCE_CAST(const uint64_t *, shortcuts & ~PRUDENCE_ROUTES_BITS_MASK) +
                            prudence_routes_shortcut_(high, shortcuts & PRUDENCE_ROUTES_BITS_MASK),
                        __ATOMIC_CONSUME);
    uint64_t bits = word >> PRUDENCE_ROUTES_SKIP_SHIFT;
    const uint64_t *node = PRUDENCE_CAST(const uint64_t *, word &PRUDENCE_ROUTES_ADDRESS_MASK);

    if (!word || node[-1] != high >> (64 - bits)) {
        const uintptr_t index = __atomic_load_n(&table->index, __ATOMIC_CONSUME);

        bits = index & PRUDENCE_ROUTES_BITS_MASK;
        word = __atomic_load_n(PRUDENCE_CAST(const uint64_t *, index & ~PRUDENCE_ROUTES_BITS_MASK) +
                                   (high >> (64 - bits)),
                               __ATOMIC_CONSUME);
        if (!(word & PRUDENCE_ROUTES_NODE))
            return word;
        node = PRUDENCE_CAST(const uint64_t *, 0 - word);
    }
    high = high << bits | low >> (64 - bits);
    low <<= bits;
    while (node[1] >> (high >> 58) & 1) {
        const uint64_t *place = node + 2 + prudence_routes_rank_(node[1], high >> 58);
        const uint64_t below = __atomic_load_n(place, __ATOMIC_CONSUME);
        const uint64_t others = 63 - (below >> PRUDENCE_ROUTES_SKIP_SHIFT);

        node = PRUDENCE_CAST(const uint64_t *, below &PRUDENCE_ROUTES_ADDRESS_MASK);
        high = high << 6 | low >> 58;
        low <<= 6;
        if (((node[-1] << others << 1) ^ high) >> others >> 1)
            return __atomic_load_n(node + 2 + prudence_routes_ones_(node[1]), __ATOMIC_CONSUME);
        high = high << (63 - others) | low >> others >> 1;
        low <<= 63 - others;
    }
    return __atomic_load_n(prudence_routes_match_(node, high >> 58), __ATOMIC_CONSUME);
}

/*
 * By what ThreadSanitizer knows a value: an update that brings it into a table releases this, and a thread that finds it acquires it. One of
 * the first words of the table, as a value may be a number that is no address.
 */
static inline uintptr_t prudence_routes_mark_(const struct prudence_routes *table, uintptr_t value)
{
    return PRUDENCE_CAST(uintptr_t, table) +
           ((value ^ value >> 4 ^ value >> 8) & 15) * sizeof value;
}

/* ------------------------------------------------------------------------ making and destroying */

/* For prudence_routes_attr.family. */
enum prudence_routes_family {
    PRUDENCE_ROUTES_IPV4 = 0, /* addresses of 4 bytes */
    PRUDENCE_ROUTES_IPV6 = 1, /* of 16 */
};

/* How a table is made. */
struct prudence_routes_attr {
    size_t size;                    /* sizeof(struct prudence_routes_attr), so that it can grow */
    unsigned family;                /* of enum prudence_routes_family */
    unsigned reserved;              /* 0 */
    uint64_t prefixes;              /* for so many there is an index at first; 0: few */
    struct prudence_domain *domain; /* whose readers search the table; NULL: the default domain */
};

/*
 * Makes an empty table; attr may be NULL (IPv4). `name` stands in the statistics of its caches. NULL with errno EINVAL (a
 * message on standard error names the cause), ENOMEM, or ENOTSUP: an x86-64 processor without the instruction popcnt,
 * which all since 2008 have.
 */
#define prudence_routes_create prudence_routes2_create /* 2: the layout that lookups read */
PRUDENCE_API struct prudence_routes *
prudence_routes_create(const char *name, const struct prudence_routes_attr *attr);

/*
 * Destroys a table that nobody uses any more, with the prefixes that are in it; what their values point to stays. Waits for
 * the grace period of nodes that were replaced. Returns 0, or an error number with the table as usable as before: EBUSY in
 * a handler of pthread_atfork; EDEADLK, with a report, where prudence_domain_synchronize of its domain gives it (inside a
 * section); EINVAL for NULL. Cost: that of all nodes.
 */
PRUDENCE_API int prudence_routes_destroy(struct prudence_routes *table);

/* ------------------------------------------------------------------------------------- readers */

/*
 * The value of the longest prefix that matches the address; 0: none does. Wait-free. Cost: two loads, if nothing is longer
 * than the index is wide (7 bits; from 256 prefixes on 13, from 131,072 on 19); else a node of 2 cache
 * lines for each 6 bits more, at most 5 (IPv4) or 21 (IPv6, where most have none and the first 31 bits are mostly spared). A table of the
 * other family gives an answer without meaning.
 */
static inline uintptr_t prudence_routes_lookup_ipv4(const struct prudence_routes *table,
                                                    const void *address)
{
    uint32_t bytes;
    uintptr_t value;

    memcpy(&bytes, address, sizeof bytes);
    value = prudence_routes_lookup_(table, UINT64_C(1) * __builtin_bswap32(bytes) << 32, 0);
    PRUDENCE_TELL_FOUND(prudence_routes_mark_(table, value));
    return value;
}

static inline uintptr_t prudence_routes_lookup_ipv6(const struct prudence_routes *table,
                                                    const void *address)
{
    uint64_t bytes[2];
    uintptr_t value;

    memcpy(bytes, address, sizeof bytes);
    value = prudence_routes_lookup_far_(table, __builtin_bswap64(bytes[0]),
                                        __builtin_bswap64(bytes[1]));
    PRUDENCE_TELL_FOUND(prudence_routes_mark_(table, value));
    return value;
}

/* The value of this very prefix; 0: it is not in the table, or none (see EINVAL below). Wait-free. */
PRUDENCE_API uintptr_t prudence_routes_get(const struct prudence_routes *table,
                                           const struct prudence_prefix *prefix);

/*
 * All prefixes that lie within one (which is one of them; NULL: all), in the order of their addresses, of one address the
 * shortest first:
 *
 *     prudence_routes_for_each(&walk, table, within)
 *         print(&walk.prefix, walk.value);                    break ends it early; the body may update the table
 *
 * A prefix that is in the table during the whole walk is found exactly once; one that is added or removed during it, at most
 * once. The walk may span several sections. Where `within` is no prefix (see EINVAL below), nothing is found. Each step is a
 * search from the root.
 */
struct prudence_routes_walk {
    struct prudence_prefix prefix; /* what was found, ... */
    uintptr_t value;               /* ... and its value */
    struct prudence_prefix within; /* private, as is the rest */
    const struct prudence_routes *table;
    bool begun;
};

PRUDENCE_API void prudence_routes_walk_begin(struct prudence_routes_walk *walk,
                                             const struct prudence_routes *table,
                                             const struct prudence_prefix *within);
PRUDENCE_API bool prudence_routes_walk_next(struct prudence_routes_walk *walk);

#define prudence_routes_for_each(walk, table, within)                                              \
    for (prudence_routes_walk_begin(walk, table, within); prudence_routes_walk_next(walk);)

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each takes the lock of the table (a sleeping one) for a moment. 0, or an error number with the table as it was:
 *
 *   EINVAL   the prefix is longer than an address, or bits behind its length are set; the value is 0 or more than 2^63 - 1
 *   EEXIST   (add) the prefix is in the table
 *   ENOENT   (replace, remove) it is not
 *   ENOMEM   (add, remove) there is no memory for the node in which it is added, or for a smaller one without it
 *
 * replace and remove store the value before in *old (which may be NULL), so that the caller can defer what it points to. Of several
 * threads that remove one prefix, one gets 0.
 *
 * Cost: a search, a copy of one node (not for replace), and a store to each node and each word of the index below, down
 * to where longer prefixes are: for most prefixes none or a few, for a default route up to all, under the lock. At
 * most 1,040 bytes are deferred, and for each 6 bits of the prefix up to 32 more, if no other prefix shares them; of IPv6 1,088,
 * and at most 384 more. When the index or the shortcuts get wider, they are made anew under the lock.
 */
PRUDENCE_API int prudence_routes_add(struct prudence_routes *table,
                                     const struct prudence_prefix *prefix, uintptr_t value);
PRUDENCE_API int prudence_routes_replace(struct prudence_routes *table,
                                         const struct prudence_prefix *prefix, uintptr_t value,
                                         uintptr_t *old);
PRUDENCE_API int prudence_routes_remove(struct prudence_routes *table,
                                        const struct prudence_prefix *prefix, uintptr_t *old);

/* ---------------------------------------------------------------------------------- statistics */

/* How many prefixes there are. */
PRUDENCE_API uint64_t prudence_routes_count(const struct prudence_routes *table);

struct prudence_routes_stats {
    uint64_t prefixes;
    uint64_t nodes;
    uint64_t index_bits;   /* of an address, that the index is for */
    uint64_t refused;      /* how often there was no memory for a wider index, or more shortcuts */
    uint64_t bytes_live;   /* of the table, its index, its shortcuts and its nodes */
    uint64_t bytes_latent; /* of what was replaced and waits for readers */
};

/* Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL. */
PRUDENCE_API int prudence_routes_stats_sized(struct prudence_routes *table,
                                             struct prudence_routes_stats *stats, size_t size);

#define prudence_routes_stats(table, stats)                                                        \
    prudence_routes_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_ROUTES_H */
