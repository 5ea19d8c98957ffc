/* SPDX-License-Identifier: MIT */
/*
 * Tables of routes. A key is an address and the prefixes that match it, of five lengths; an update
 * of one of them changes the answer for the address in one step. Other prefixes come and go in the
 * same nodes. Faults that the checker must find: a replacement in two steps; a lookup that asks for
 * one length after the other.
 */
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <prudence/routes.h>

#include <stddef.h>

#include "history.h"

#define KEYS    6
#define LENGTHS 5
#define WRONG   (UINT64_C(1) << 40) /* the value of prefixes that match no key's address */

static struct prudence_routes *table;
static bool is_ipv6;

/* IPv6: shortcuts begin between the first two, and nodes hang several levels below others. */
static const unsigned char lengths[2][LENGTHS] = {{6, 13, 20, 24, 32}, {29, 32, 44, 48, 64}};

/* Stores the address of a key. Only its own prefixes match it. */
static void address_of(uint64_t key, unsigned char *bytes)
{
    static const unsigned char last[] = {0x93, 0x5a, 0x07, 0xc1, 0x66, 0x31};

    bytes[0] = is_ipv6 ? 0x20 : (unsigned char)(key << 2);
    bytes[1] = is_ipv6 ? 0x01 : last[(key + 1) % KEYS];
    bytes[2] = is_ipv6 ? 0x0d : last[key];
    bytes[3] = is_ipv6 ? (unsigned char)(key << 3) : last[(key + 2) % KEYS];
    for (unsigned i = 4; i < 16; i++)
        bytes[i] = is_ipv6 ? last[(key + i) % KEYS] : 0;
}

static struct prudence_routes_prefix prefix_of_length(uint64_t key, unsigned length)
{
    struct prudence_routes_prefix prefix = {.length = length};

    address_of(key, prefix.address);
    for (unsigned bit = length; bit < 128; bit++)
        prefix.address[bit / 8] &= (unsigned char)~(0x80u >> bit % 8);
    return prefix;
}

static struct prudence_routes_prefix prefix_of(uint64_t key, uint64_t which)
{
    return prefix_of_length(key, lengths[is_ipv6][which]);
}

static uintptr_t route_to(uint64_t key)
{
    unsigned char address[16];

    address_of(key, address);
    return is_ipv6 ? prudence_routes_lookup_ipv6(table, address)
                   : prudence_routes_lookup_ipv4(table, address);
}

static uintptr_t replace(const struct prudence_routes_prefix *prefix, uintptr_t value)
{
    uintptr_t old = 0;

    prudence_routes_replace(table, prefix, value, &old);
    return old;
}

/* Replaces in two steps; in between, the address has a shorter prefix, or none. */
static uintptr_t broken_replace(const struct prudence_routes_prefix *prefix, uintptr_t value)
{
    uintptr_t old = 0;

    if (prudence_routes_erase(table, prefix, &old))
        return 0;
    maybe_yield();
    prudence_routes_add(table, prefix, value, NULL);
    return old;
}

/* The longest prefix may be added, and the next one removed, after this has asked for the former
 * and before it asks for the latter. */
static uintptr_t broken_route_to(uint64_t key)
{
    uintptr_t value = 0;

    for (uint64_t which = LENGTHS; which-- > 0 && !value;) {
        const struct prudence_routes_prefix prefix = prefix_of(key, which);

        value = prudence_routes_get(table, &prefix);
        maybe_yield();
    }
    return value;
}

static void update(struct operation *operation, uint64_t *random,
                   uintptr_t (*replace_one)(const struct prudence_routes_prefix *, uintptr_t))
{
    const uint64_t key = random_below(random, KEYS), which = random_below(random, LENGTHS),
                   choice = random_below(random, 10);
    const struct prudence_routes_prefix prefix = prefix_of(key, which);
    const uint64_t value = choice < 7 ? fresh_value() : 0;
    uintptr_t old = 0;

    operation_begins(operation,
                     choice < 4   ? ROUTE_ADD
                     : choice < 7 ? ROUTE_REPLACE
                                  : ROUTE_REMOVE,
                     key, value);
    operation->second = which;
    if (choice < 4)
        old = prudence_routes_add(table, &prefix, value, NULL) == 0;
    else if (choice < 7)
        old = replace_one(&prefix, value);
    else
        prudence_routes_erase(table, &prefix, &old);
    operation_ends(operation, old);
}

static void operate_with(struct operation *operation, uint64_t *random,
                         uintptr_t (*look_up)(uint64_t key),
                         uintptr_t (*replace_one)(const struct prudence_routes_prefix *, uintptr_t))
{
    if (random_below(random, 2)) {
        update(operation, random, replace_one);
        return;
    }
    prudence_read_lock();
    operation_begins(operation, ROUTE_LOOKUP, random_below(random, KEYS), 0);
    maybe_yield();
    operation_ends(operation, look_up(operation->key));
    prudence_read_unlock();
}

static void operate(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, route_to, replace);
}

static void operate_in_two_steps(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, route_to, broken_replace);
}

static void operate_by_length(struct operation *operation, uint64_t *random)
{
    operate_with(operation, random, broken_route_to, replace);
}

/* Adds and removes the prefix of an address with one bit changed: nodes and edges on the
 * address's way change, but no answer. */
static void disturb_next_to(uint64_t key, unsigned bit, unsigned length)
{
    struct prudence_routes_prefix prefix = prefix_of_length(key, length);

    prefix.address[bit / 8] ^= (unsigned char)(0x80u >> bit % 8);
    if (prudence_routes_add(table, &prefix, WRONG, NULL))
        prudence_routes_erase(table, &prefix, NULL);
}

static void disturb(uint64_t *random)
{
    const unsigned bit = lengths[0][0] + random_below(random, 32u - lengths[0][0]);

    disturb_next_to(random_below(random, KEYS), bit, bit + 1);
}

/* Updates pairs: the address leaves an edge to the longer prefix, which the shorter one cuts. */
static void disturb_edges(uint64_t *random)
{
    static const struct {
        unsigned bit, length;
    } near[] = {{50, 60}, {50, 54}, {80, 110}, {80, 90}};
    const uint64_t which = random_below(random, sizeof near / sizeof near[0]);

    disturb_next_to(random_below(random, KEYS), near[which].bit, near[which].length);
}

static void make_of(bool ipv6)
{
    const struct prudence_routes_attr attr = {
        .size = sizeof attr, .family = ipv6 ? PRUDENCE_ROUTES_IPV6 : PRUDENCE_ROUTES_IPV4};

    is_ipv6 = ipv6;
    table = prudence_routes_create("history", &attr);
}

static void make(void)
{
    make_of(false);
}

static void make_ipv6(void)
{
    make_of(true);
}

static void unmake(void)
{
    prudence_routes_destroy(table);
}

const struct subject route_subjects[] = {
    {"routes", make, operate, disturb, unmake},
    {"routes-of-ipv6", make_ipv6, operate, disturb_edges, unmake},
    {"broken-routes-replaced-in-two-steps", make_ipv6, operate_in_two_steps, disturb_edges, unmake},
    {"broken-routes-looked-up-by-length", make_ipv6, operate_by_length, disturb_edges, unmake},
    {.name = NULL},
};
