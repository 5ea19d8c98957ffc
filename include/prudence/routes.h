/* SPDX-License-Identifier: MIT */
/*
 * Routes: IPv4 or IPv6 prefixes with a value each, and, for an address, the value of the longest
 * prefix that matches. Readers write nothing shared, take no lock, and do not wait, whatever
 * writers do. A full table of the Internet can be changed while being read: an update replaces one
 * node of a few cache lines, and the old node is freed when the readers have ended. docs/adr/0070
 * has the design and the reasons. (P. McKenney, "Exploiting Deferred Destruction", 2004,
 * sections 2.2.18 and 3.5, has routing tables as the example of readers to whom data may be stale
 * for a moment.)
 *
 *     struct prudence_routes_prefix prefix = {.address = {192, 0, 2, 0}, .length = 24};
 *     ...
 *     error = prudence_routes_add(routes, &prefix, next_hop, NULL);
 *     ...
 *     prudence_read_lock();
 *     next_hop = prudence_routes_lookup_ipv4(routes, &packet->destination);
 *     ...
 *     prudence_read_unlock();
 *
 * Conventions are those of <prudence/prudence.h>, and these:
 *  - Addresses: bytes as in a packet, 4 or 16 of them, at any alignment.
 *  - Values: a pointer, or a number from 1 to 2^63 - 1. 0 says that there is none.
 *  - Sections: lookups are made inside a read-side section of the table's domain, or online there;
 *    so are walks, which may span several. The target of a value stays valid until the section
 *    ends. Updates need no section. Make them outside, so that deferrals may wait when
 *    `latent_limit` is reached.
 *  - Ownership: targets of values belong to the caller. After a value was replaced or removed, the
 *    target may be freed only after a grace period (prudence_free_deferred). The table allocates
 *    nodes (some spare, at most one of each size), an index, and for IPv6 shortcuts.
 *  - Order: a reader that finds a value sees the target in the state in which the value was added.
 *    For each address an update takes effect at one moment. A lookup has the answer before or after
 *    that, and lookups of one address never go back. Every lookup that begins after an update has
 *    returned sees that update. While an update is under way, the update may be visible at one
 *    address and not yet at another, also to two lookups in one section.
 *  - Signals: lookups, get and walks are async-signal-safe; nothing else is.
 *  - Fork: fork() waits until no thread is inside an update. A child may read and update. In the
 *    child alone, the memory that another thread was about to add or to defer is lost with that
 *    thread. After _Fork or clone, a child may only read.
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

/* The first `length` bits of the address; all others are 0. For IPv4 the first 4 bytes count. */
struct prudence_routes_prefix {
    unsigned char address[16];
    unsigned length; /* 0 (all addresses) to 32, or to 128 */
};

/* ------------------------------------------------------- what inlined readers need (private) */

/*
 * The first word of a table: the address of the index, with the number of an address's bits that
 * select a word there in the lowest 5 bits. That word is a value (0: none) if no longer prefix is
 * there, or a node's address, negated. So the highest bit is set, which no value has. Values are
 * stored unchanged, because leak checkers recognise a pointer by that.
 *
 * If PRUDENCE_ROUTES_AREAS is set in the first word, a word of the index may also be the negated
 * address of an area, plus 1. An area has such a word for each value of the next 12 bits.
 *
 * A node covers 6 bits of an address: prefixes of 6 lengths, and the places of longer ones.
 *
 *     word 0    bit n: the prefix of the last 1 to 6 bits of n is there; n's highest one only gives
 *               their number. Bit 0 is always set, for the longest shorter prefix.
 *     word 1    bit s: there is another node after these 6 bits
 *     then      the addresses of those nodes, in the order of their bits,
 *               and the value of each prefix, likewise. (The shorter prefix may be none: 0.)
 *
 * Words 0 and 1 and the addresses' places never change in a node; another node replaces the node.
 * Values are stored in place.
 */
struct prudence_routes {
    uintptr_t index;
    uintptr_t shortcuts; /* for IPv6, in the same form; number of bits of a slot's number */
};

#define PRUDENCE_ROUTES_NODE         (UINT64_C(1) << 63)
#define PRUDENCE_ROUTES_BITS_MASK    UINT64_C(31)
#define PRUDENCE_ROUTES_AREAS        UINT64_C(32)
#define PRUDENCE_ROUTES_AREA_BITS    12
#define PRUDENCE_ROUTES_AREA_END     25 /* bits of an address that lead to a word of an area */
#define PRUDENCE_ROUTES_SKIP_SHIFT   56
#define PRUDENCE_ROUTES_ADDRESS_MASK (UINT64_MAX >> 8)
#define PRUDENCE_ROUTES_MIDDLE       61 /* bits before a level of IPv6 that no edge skips */

/*
 * Returns, for 6 bits s of an address, the bits of word 0 that match: (64 + s) >> 1, (64 + s) >> 2,
 * ... 1, 0.
 */
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

/*
 * Counts the ones. On x86-64 with the instruction, whatever the program is compiled for, because no
 * table can be made on a processor without that.
 */
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

/* Returns the place in the node of the child in this slot, which is there. The shift's count needs
 * no instruction that limits it, and leaves the child's own bit and those below. */
static inline const uint64_t *prudence_routes_child_(const uint64_t *node, uint64_t slot)
{
    return node + prudence_routes_ones_(node[1] << (~slot & 63)) + 1;
}

/* Returns the place in the node of the value that matches these 6 bits. */
static inline const uint64_t *prudence_routes_match_(const uint64_t *node, uint64_t slot)
{
    const uint64_t up_to_longest = node[0]
                                   << __builtin_clzll(node[0] & prudence_routes_matching_(slot));

    return node + prudence_routes_ones_(node[1]) + prudence_routes_ones_(up_to_longest) + 1;
}

/* Returns the word of an array (the index, shortcuts: an address, with the number of bits) that
 * these first bits of a number select. */
static inline const uint64_t *prudence_routes_word_(uintptr_t words, uint64_t high)
{
    return PRUDENCE_CAST(const uint64_t *,
                         words & ~(PRUDENCE_ROUTES_AREAS | PRUDENCE_ROUTES_BITS_MASK)) +
           (high >> (32 | ((0 - words) & PRUDENCE_ROUTES_BITS_MASK)));
}

/* Returns whether a word of the index, with the highest bit set, leads to an area. */
static inline bool prudence_routes_is_area_(uint64_t word)
{
    return word & 1;
}

/* Returns the word of the area that an address selects. */
static inline const uint64_t *prudence_routes_area_word_(uint64_t word, uint64_t high)
{
    return PRUDENCE_CAST(const uint64_t *, 1 - word) +
           (high << (PRUDENCE_ROUTES_AREA_END - PRUDENCE_ROUTES_AREA_BITS) >>
            (64 - PRUDENCE_ROUTES_AREA_BITS));
}

/* Looks up from a node on that these bits of an IPv4 address follow. */
static inline uintptr_t prudence_routes_lookup_near_(const uint64_t *node, uint64_t high)
{
    while (node[1] >> (high >> 58) & 1) {
        const uint64_t below =
            __atomic_load_n(prudence_routes_child_(node, high >> 58), __ATOMIC_CONSUME);

        node = PRUDENCE_CAST(const uint64_t *, below);
        high <<= 6;
    }
    return __atomic_load_n(prudence_routes_match_(node, high >> 58), __ATOMIC_CONSUME);
}

/* Looks up an IPv4 address, left-aligned. */
static inline uintptr_t prudence_routes_lookup_(const struct prudence_routes *table, uint64_t high)
{
    const uintptr_t index = __atomic_load_n(&table->index, __ATOMIC_CONSUME);
    uint64_t word = __atomic_load_n(prudence_routes_word_(index, high), __ATOMIC_CONSUME);
    uint64_t bits = index & PRUDENCE_ROUTES_BITS_MASK;

    if (!(word & PRUDENCE_ROUTES_NODE))
        return word;
    if (prudence_routes_is_area_(word)) {
        word = __atomic_load_n(prudence_routes_area_word_(word, high), __ATOMIC_CONSUME);
        if (!(word & PRUDENCE_ROUTES_NODE))
            return word;
        bits = PRUDENCE_ROUTES_AREA_END;
    }
    return prudence_routes_lookup_near_(PRUDENCE_CAST(const uint64_t *, 0 - word), high << bits);
}

/* Returns a number whose first bits select the slot that has the node that these first 31 bits lead
 * to, if any has. */
static inline uint64_t prudence_routes_hash_(uint64_t high)
{
    return (high >> 33) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Return the node at the end of an edge, and the value of the longest prefix that is shorter than
 * the node's. */
static inline const uint64_t *prudence_routes_end_(uint64_t edge)
{
    return PRUDENCE_CAST(const uint64_t *, edge &PRUDENCE_ROUTES_ADDRESS_MASK);
}

static inline uintptr_t prudence_routes_above_(const uint64_t *node)
{
    return __atomic_load_n(node + 2 + prudence_routes_ones_(node[1]), __ATOMIC_CONSUME);
}

/* Looks up from a node on that these bits of an address follow. */
static inline uintptr_t prudence_routes_lookup_below_(const uint64_t *node, uint64_t high,
                                                      uint64_t low)
{
    while (node[1] >> (high >> 58) & 1) {
        const uint64_t edge =
            __atomic_load_n(prudence_routes_child_(node, high >> 58), __ATOMIC_CONSUME);
        const uint64_t others = 63 - (edge >> PRUDENCE_ROUTES_SKIP_SHIFT);

        node = prudence_routes_end_(edge);
        high = high << 6 | low >> 58;
        low <<= 6;
        if (((node[-1] << others << 1) ^ high) >> others >> 1)
            return prudence_routes_above_(node);
        high = high << (63 - others) | low >> others >> 1;
        low <<= 63 - others;
    }
    return __atomic_load_n(prudence_routes_match_(node, high >> 58), __ATOMIC_CONSUME);
}

/*
 * Looks up an IPv6 address. A node may hang several levels below another one. The word before the
 * node has the last 64 of the address bits that lead there. The highest byte of the node's address
 * in the node above says how many of those bits no node has checked. If these bits differ, the
 * answer is the value of the longest prefix that is shorter than the node's.
 *
 * A slot has a node's address, with the number of all bits that lead there in the highest byte:
 * more than 30, at most 61.
 */
static inline uintptr_t prudence_routes_lookup_far_(const struct prudence_routes *table,
                                                    uint64_t high, uint64_t low)
{
    const uintptr_t shortcuts = __atomic_load_n(&table->shortcuts, __ATOMIC_CONSUME);
    uint64_t word = __atomic_load_n(prudence_routes_word_(shortcuts, prudence_routes_hash_(high)),
                                    __ATOMIC_CONSUME);
    uint64_t bits = word >> PRUDENCE_ROUTES_SKIP_SHIFT;
    const uint64_t *node = prudence_routes_end_(word);

    if (!word || node[-1] != high >> ((0 - bits) & 63)) {
        const uintptr_t index = __atomic_load_n(&table->index, __ATOMIC_CONSUME);

        bits = index & PRUDENCE_ROUTES_BITS_MASK;
        word = __atomic_load_n(prudence_routes_word_(index, high), __ATOMIC_CONSUME);
        if (!(word & PRUDENCE_ROUTES_NODE))
            return word;
        node = PRUDENCE_CAST(const uint64_t *, 0 - word);
    }
    while (bits < PRUDENCE_ROUTES_MIDDLE) {
        const uint64_t slot = high << bits >> 58;

        if (!(node[1] >> slot & 1))
            return __atomic_load_n(prudence_routes_match_(node, slot), __ATOMIC_CONSUME);
        word = __atomic_load_n(prudence_routes_child_(node, slot), __ATOMIC_CONSUME);
        bits += 6 + (word >> PRUDENCE_ROUTES_SKIP_SHIFT);
        node = prudence_routes_end_(word);
        if (node[-1] != high >> ((0 - bits) & 63))
            return prudence_routes_above_(node);
    }
    return prudence_routes_lookup_below_(
        node, high << PRUDENCE_ROUTES_MIDDLE | low >> (64 - PRUDENCE_ROUTES_MIDDLE),
        low << PRUDENCE_ROUTES_MIDDLE);
}

/* Returns an address from a packet, left-aligned. */
static inline uint64_t prudence_routes_high_(const unsigned char *address)
{
    uint32_t bytes;

    memcpy(&bytes, address, sizeof bytes);
    return UINT64_C(1) * __builtin_bswap32(bytes) << 32;
}

/* Addresses of a group: enough to hide a load from memory, few enough to leave the processor's
 * first cache to the nodes. */
#define PRUDENCE_ROUTES_GROUP 32u

/*
 * Looks up `count` IPv4 addresses, each one level further in turn, so that the processor loads the
 * next nodes of all at once. Until then values[i] is a word as in the index: the answer, or the
 * negated address of the node where the lookup goes on.
 */
static inline void prudence_routes_lookup_steps_(uintptr_t index, const unsigned char *addresses,
                                                 size_t count, uintptr_t *values)
{
    const uint64_t bits = index & PRUDENCE_ROUTES_BITS_MASK;
    size_t i;

    for (i = 0; i < count; i++) {
        const uint64_t *const place =
            prudence_routes_word_(index, prudence_routes_high_(addresses + 4 * i));
        const uint64_t word = __atomic_load_n(place, __ATOMIC_CONSUME);

        values[i] = word;
        __builtin_prefetch(word & PRUDENCE_ROUTES_NODE ? PRUDENCE_CAST(const uint64_t *, 0 - word)
                                                       : place);
    }
    for (i = 0; i < count; i++) {
        const uint64_t *const node = PRUDENCE_CAST(const uint64_t *, 0 - values[i]);
        const uint64_t slot = prudence_routes_high_(addresses + 4 * i) << bits >> 58;

        if (!(values[i] & PRUDENCE_ROUTES_NODE))
            continue;
        if (node[1] >> slot & 1) {
            values[i] = 0 - __atomic_load_n(prudence_routes_child_(node, slot), __ATOMIC_CONSUME);
            __builtin_prefetch(PRUDENCE_CAST(const uint64_t *, 0 - values[i]));
        } else {
            values[i] = __atomic_load_n(prudence_routes_match_(node, slot), __ATOMIC_CONSUME);
        }
    }
    for (i = 0; i < count; i++)
        if (values[i] & PRUDENCE_ROUTES_NODE)
            values[i] =
                prudence_routes_lookup_near_(PRUDENCE_CAST(const uint64_t *, 0 - values[i]),
                                             prudence_routes_high_(addresses + 4 * i) << bits << 6);
}

/*
 * The same in a table that has areas, which is small. Most words there are values, without a rule
 * that a processor could predict, so the addresses that go on are listed without a branch.
 */
static inline void prudence_routes_lookup_areas_(uintptr_t index, const unsigned char *addresses,
                                                 size_t count, uintptr_t *values)
{
    const uint64_t bits = index & PRUDENCE_ROUTES_BITS_MASK;
    unsigned char at_node[PRUDENCE_ROUTES_GROUP] = {0}, below_area[PRUDENCE_ROUTES_GROUP] = {0};
    size_t i, k, last, nodes = 0, below = 0;

    for (i = 0; i < count; i++) {
        values[i] =
            __atomic_load_n(prudence_routes_word_(index, prudence_routes_high_(addresses + 4 * i)),
                            __ATOMIC_CONSUME);
        at_node[nodes] = PRUDENCE_CONVERT(unsigned char, i);
        nodes += values[i] >> 63;
    }
    for (last = nodes, nodes = 0, k = 0; k < last; k++) {
        i = at_node[k];
        if (prudence_routes_is_area_(values[i])) {
            values[i] = __atomic_load_n(
                prudence_routes_area_word_(values[i], prudence_routes_high_(addresses + 4 * i)),
                __ATOMIC_CONSUME);
            below_area[below] = PRUDENCE_CONVERT(unsigned char, i);
            below += values[i] >> 63;
        } else {
            __builtin_prefetch(PRUDENCE_CAST(const uint64_t *, 0 - values[i]));
            at_node[nodes++] = PRUDENCE_CONVERT(unsigned char, i);
        }
    }
    for (k = 0; k < nodes; k++) {
        i = at_node[k];
        values[i] = prudence_routes_lookup_near_(PRUDENCE_CAST(const uint64_t *, 0 - values[i]),
                                                 prudence_routes_high_(addresses + 4 * i) << bits);
    }
    for (k = 0; k < below; k++) {
        i = below_area[k];
        values[i] = prudence_routes_lookup_near_(PRUDENCE_CAST(const uint64_t *, 0 - values[i]),
                                                 prudence_routes_high_(addresses + 4 * i)
                                                     << PRUDENCE_ROUTES_AREA_END);
    }
}

static inline void prudence_routes_lookup_group_(const struct prudence_routes *table,
                                                 const unsigned char *addresses, size_t count,
                                                 uintptr_t *values)
{
    const uintptr_t index = __atomic_load_n(&table->index, __ATOMIC_CONSUME);

    if (index & PRUDENCE_ROUTES_AREAS)
        prudence_routes_lookup_areas_(index, addresses, count, values);
    else
        prudence_routes_lookup_steps_(index, addresses, count, values);
}

/*
 * Returns the address by which ThreadSanitizer knows a value. An update that brings the value into
 * a table releases that address, and a thread that finds the value acquires it. The address is one
 * of the first words of the table, because a value may be a number that is no address.
 */
static inline uintptr_t prudence_routes_mark_(const struct prudence_routes *table, uintptr_t value)
{
    return PRUDENCE_CAST(uintptr_t, table) +
           ((value ^ value >> 4 ^ value >> 8) & 15) * sizeof value;
}

/* ------------------------------------------------------------------------ making and destroying */

/* Families of prudence_routes_attr.family. */
enum prudence_routes_family {
    PRUDENCE_ROUTES_IPV4 = 0, /* addresses of 4 bytes */
    PRUDENCE_ROUTES_IPV6 = 1, /* addresses of 16 bytes */
};

/* Attributes of a table, used as those of <prudence/hash.h>. */
struct prudence_routes_attr {
    size_t size;                    /* sizeof(struct prudence_routes_attr) */
    unsigned family;                /* of enum prudence_routes_family */
    unsigned reserved;              /* 0 */
    uint64_t prefixes;              /* number that the index is sized for at first; 0: few */
    struct prudence_domain *domain; /* whose readers search the table; NULL: the default domain */
};

/*
 * Makes an empty table; attr may be NULL, which means defaults (IPv4). `name` appears in the
 * statistics of the caches. Returns NULL with errno EINVAL (a message on standard error
 * names the cause), ENOMEM, or ENOTSUP: an x86-64 processor without the instruction popcnt, which
 * all since 2008 have.
 */
#define prudence_routes_create prudence_routes3_create /* 3 is the layout that lookups read */
PRUDENCE_API struct prudence_routes *
prudence_routes_create(const char *name, const struct prudence_routes_attr *attr);

/*
 * Destroys a table that no thread uses any more, with all prefixes; the targets of values, which
 * many prefixes may share, stay. Waits for the grace period of replaced nodes. Returns 0, or an
 * error number with the table as usable as before: EBUSY in a handler of pthread_atfork; EDEADLK,
 * with a report, where prudence_domain_synchronize of the domain fails (inside a section), and
 * online in any qsbr domain; EINVAL for NULL. Cost: visits all nodes.
 */
PRUDENCE_API int prudence_routes_destroy(struct prudence_routes *table);

/* ------------------------------------------------------------------------------------- readers */

/*
 * Return the value of the longest prefix that matches the address, or 0 if none does. Wait-free.
 * Cost: two loads, if nothing is longer than the index is wide (7 bits; from 256 prefixes on 13,
 * from 131,072 on 19). Otherwise a node of 2 cache lines for each 6 bits more, at most 5 (IPv4) or
 * 21 (IPv6, where most have none and the first 31 bits are mostly spared). With 256 to 8,191
 * prefixes of IPv4, one load spares the first 25 bits in up to 32 regions of 13 bits that have
 * many. A table of the other family gives a meaningless answer.
 */
PRUDENCE_INLINE uintptr_t prudence_routes_lookup_ipv4(const struct prudence_routes *table,
                                                      const void *address)
{
    const uintptr_t value = prudence_routes_lookup_(
        table, prudence_routes_high_(PRUDENCE_CONVERT(const unsigned char *, address)));

    PRUDENCE_TELL_FOUND(prudence_routes_mark_(table, value));
    return value;
}

PRUDENCE_INLINE uintptr_t prudence_routes_lookup_ipv6(const struct prudence_routes *table,
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

/*
 * Looks up `count` IPv4 addresses that follow each other in memory, 4 bytes each, and stores the
 * values that prudence_routes_lookup_ipv4 would return, in the same order. All lookups are inside
 * one section of the caller. Each address gets an answer that was right at a moment during the
 * call. Wait-free. Cost: about the instructions of single lookups, but the loads of up to 32
 * lookups overlap. So a table that does not fit the processor's caches gains most, and one of fewer
 * than 8,192 prefixes has fewer branches that cannot be predicted.
 */
PRUDENCE_INLINE void prudence_routes_lookup_many_ipv4(const struct prudence_routes *table,
                                                      const void *addresses, size_t count,
                                                      uintptr_t *values)
{
    const unsigned char *from = PRUDENCE_CONVERT(const unsigned char *, addresses);
    size_t done, i;

    for (done = 0; done < count; done += PRUDENCE_ROUTES_GROUP)
        prudence_routes_lookup_group_(table, from + 4 * done,
                                      count - done < PRUDENCE_ROUTES_GROUP ? count - done
                                                                           : PRUDENCE_ROUTES_GROUP,
                                      values + done);
    for (i = 0; i < count; i++)
        PRUDENCE_TELL_FOUND(prudence_routes_mark_(table, values[i]));
}

/*
 * Returns the value of this exact prefix, or 0 if the table does not have the prefix, or the prefix
 * is invalid (EINVAL below). Wait-free.
 */
PRUDENCE_API uintptr_t prudence_routes_get(const struct prudence_routes *table,
                                           const struct prudence_routes_prefix *prefix);

/*
 * Walks over all prefixes within one (inclusive; NULL: all), in the order of their addresses,
 * shortest first for one address:
 *
 *     prudence_routes_for_each(&walk, table, within, value)
 *         print(&walk.prefix, value);      break ends it early; the body may update the table
 *
 * The walk finds a prefix exactly once if the prefix is in the table during the whole walk, and a
 * prefix that is added or erased during the walk at most once. The walk may span several sections.
 * With an invalid `within` (EINVAL below) the walk finds nothing. first and next return a value, or
 * 0 at the end. Each step is a search from the root.
 */
struct prudence_routes_walk {
    struct prudence_routes_prefix prefix; /* the prefix found */
    struct prudence_routes_prefix within; /* private, like the rest */
    const struct prudence_routes *table;
    bool begun;
};

PRUDENCE_API uintptr_t prudence_routes_first(struct prudence_routes_walk *walk,
                                             const struct prudence_routes *table,
                                             const struct prudence_routes_prefix *within);
PRUDENCE_API uintptr_t prudence_routes_next(struct prudence_routes_walk *walk);

#define prudence_routes_for_each(walk, table, within, place)                                       \
    for ((place) = prudence_routes_first(walk, table, within); (place);                            \
         (place) = prudence_routes_next(walk))

/* ------------------------------------------------------------------------------------- writers */

/*
 * Each of these takes the lock of the table (a sleeping one) for a moment. They return 0, or an
 * error number with the table as it was:
 *
 *     EINVAL   NULL for the table or the prefix; the prefix is longer than an address, or bits
 *              after its length are set; the value is 0 or more than 2^63 - 1
 *     EEXIST   (add) the prefix is in the table
 *     ENOENT   (replace, erase) it is not
 *     ENOMEM   (add, erase) there is no memory for the node in which it is added, or for a smaller
 *              one without it
 *
 * The last argument may be NULL; otherwise the value that the prefix had is stored there, so that
 * the caller can defer the target, or 0 if the prefix had none or an argument is wrong. (If replace
 * is given the value that the prefix has, it stores that value, which the table still has: compare
 * the two before you defer a target.) If several threads erase one prefix, one gets 0.
 *
 * Cost: a search, a copy of one node (not for replace), and a store to each node and each word of
 * the index below, down to the longer prefixes: none or a few for most prefixes, up to all for a
 * default route, under the lock. At most 1,040 bytes are deferred, and for each 6 bits of the
 * prefix up to 32 more, if no other prefix shares them; for IPv6 1,088, and at most 384 more. When
 * the index or the shortcuts get wider, they are rebuilt under the lock.
 */
PRUDENCE_API int prudence_routes_add(struct prudence_routes *table,
                                     const struct prudence_routes_prefix *prefix, uintptr_t value,
                                     uintptr_t *there);
PRUDENCE_API int prudence_routes_replace(struct prudence_routes *table,
                                         const struct prudence_routes_prefix *prefix,
                                         uintptr_t value, uintptr_t *old);
PRUDENCE_API int prudence_routes_erase(struct prudence_routes *table,
                                       const struct prudence_routes_prefix *prefix, uintptr_t *old);

/* ---------------------------------------------------------------------------------- statistics */

/* Returns the number of prefixes. */
PRUDENCE_API uint64_t prudence_routes_count(const struct prudence_routes *table);

struct prudence_routes_stats {
    uint64_t prefixes;
    uint64_t nodes;
    uint64_t index_bits;   /* number of an address's bits that the index is for */
    uint64_t refused;      /* number of times that memory was lacking for a wider index, a part of
                              it, or more shortcuts */
    uint64_t bytes_live;   /* bytes of the table, the index, the shortcuts, all nodes, also spare */
    uint64_t bytes_latent; /* bytes that were replaced and wait for readers */
};

/*
 * Fills `stats`, of which the caller was compiled with `size` bytes. Returns 0, or EINVAL for NULL.
 */
PRUDENCE_API int prudence_routes_stats_sized(struct prudence_routes *table,
                                             struct prudence_routes_stats *stats, size_t size);

#define prudence_routes_stats(table, stats)                                                        \
    prudence_routes_stats_sized(table, stats, sizeof *(stats))

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_ROUTES_H */
