/* SPDX-License-Identifier: MIT */
/*
 * Routes under many more threads than CPUs. Lasting prefixes are always found, also beneath shorter
 * ones that come and go; a route that is found matches the address, and is live or was retired in a
 * grace period that is not over. Of a long and a short prefix one always exists, so an address in
 * both always has a route. Walks go in order, and find lasting prefixes once.
 *
 * Variants: an index that grows, or a wide one from the beginning; IPv6, with 12 zero bits in the
 * middle of all addresses, so that nodes hang several levels below others; and a low latent_limit
 * with readers that stay, where no wait reaches wait_max, and nothing excuses a byte above the
 * limit.
 */
#define _GNU_SOURCE
#include <prudence/routes.h>

#include "support/torture_objects.h"

#define READERS 8
#define WRITERS 5
#define LASTING 64   /* 10.0.0.0/16 to 10.63.0.0/16 */
#define OWN     3000 /* most prefixes of each writer */

static struct prudence_routes *table;
static bool readers_stay, is_ipv6;

/* The key of an object is a route. */
#define ROUTE(address, length) ((uint64_t)(address) << 8 | (length))

/* Stores the address as in a packet. An IPv6 address has 16 constant bits, the first half, 12
 * zeros, and the second half. */
static void put_address(unsigned char *bytes, uint32_t address)
{
    const uint64_t wide = UINT64_C(0x2001) << 48 | (uint64_t)(address >> 16) << 32 |
                          (uint64_t)(address & 0xffff) << 4;
    const uint64_t in_order = is_ipv6 ? htobe64(wide) : htobe64((uint64_t)address << 32);

    memcpy(bytes, &in_order, sizeof in_order);
}

static struct prudence_routes_prefix prefix_of(uint64_t route)
{
    struct prudence_routes_prefix prefix = {.length = route & 0xff};

    if (is_ipv6 && !prefix.length)
        return prefix;
    put_address(prefix.address, (uint32_t)(route >> 8));
    if (is_ipv6)
        prefix.length += prefix.length > 16 ? 28 : 16;
    return prefix;
}

static bool matches(uint64_t route, uint32_t address)
{
    const unsigned length = route & 0xff;

    return !length || ((uint32_t)(route >> 8) ^ address) >> (32 - length) == 0;
}

/* -------------------------------------------------------------------------------------- readers */

/* Returns the length of the route found for the address. A route of at least `least` bits always
 * exists; 0 if none may exist. */
static unsigned check_found(uint32_t address, unsigned least, uintptr_t value)
{
    uint64_t route;

    if (!value) {
        if (least)
            torture_violation("there is no route for %08x", address);
        return 0;
    }
    route = object_seen((void *)value);
    if (!matches(route, address) || (route & 0xff) < least)
        torture_violation("for %08x the route %08x/%u is found", address, (unsigned)(route >> 8),
                          (unsigned)(route & 0xff));
    return route & 0xff;
}

static unsigned look_up(uint32_t address, unsigned least)
{
    unsigned char bytes[16] = {0};

    put_address(bytes, address);
    return check_found(address, least,
                       is_ipv6 ? prudence_routes_lookup_ipv6(table, bytes)
                               : prudence_routes_lookup_ipv4(table, bytes));
}

/* Looks up IPv4 addresses by one call, each as look_up does. */
static void look_up_together(const uint32_t *addresses, const unsigned *least, unsigned count)
{
    uint32_t packed[4];
    uintptr_t values[4];

    for (unsigned i = 0; i < count; i++)
        packed[i] = htobe32(addresses[i]);
    prudence_routes_lookup_many_ipv4(table, packed, count, values);
    for (unsigned i = 0; i < count; i++)
        check_found(addresses[i], least[i], values[i]);
}

/* Addresses of writer w, apart from its own prefixes: one of two prefixes always exists. */
#define EITHER(w) (0x0ac80000u + ((uint32_t)(w) << 16))

static void read_routes(uint64_t *random)
{
    prudence_read_lock();
    for (unsigned i = 0; i < 20; i++) {
        const uint32_t any = (uint32_t)(torture_random(random) >> 32);

        look_up(any, 0);
        look_up(0x0a000000 | (any & 0x3fffff), 16);
        if (look_up(0x0a000001 | (any & 0x3f0000), 32) != 32)
            torture_violation("a lasting host is not found");
        look_up(EITHER(any % WRITERS) + 7, 20);
        if (!is_ipv6)
            look_up_together((const uint32_t[]){any, 0x0a000000 | (any & 0x3fffff),
                                                0x0a000001 | (any & 0x3f0000),
                                                EITHER(any % WRITERS) + 7},
                             (const unsigned[]){0, 16, 32, 20}, 4);
    }
    if (readers_stay && torture_below(random, 50) == 0)
        torture_sleep_us(20000);
    prudence_read_unlock();
    __atomic_fetch_add(&lookups, 80, __ATOMIC_RELAXED);
}

static void walk(void)
{
    struct prudence_routes_walk at;
    unsigned lasting = 0;
    uint64_t last = 0;
    uintptr_t value;
    bool first = true;

    prudence_read_lock();
    prudence_routes_for_each(&at, table, NULL, value)
    {
        uint64_t route = object_seen((void *)value);

        if (!first && route <= last)
            torture_violation("a walk goes from %llx to %llx", (unsigned long long)last,
                              (unsigned long long)route);
        first = false;
        last = route;
        lasting += (route & 0xff) == 16 && route >> 24 >= 0x0a00 && route >> 24 < 0x0a00 + LASTING;
    }
    prudence_read_unlock();
    if (lasting != LASTING)
        torture_violation("a walk finds %u prefixes that last", lasting);
    __atomic_fetch_add(&walks, 1, __ATOMIC_RELAXED);
}

static void *reader(void *seed)
{
    uint64_t random = (uintptr_t)seed * 77 + 1;

    while (!torture_stopped()) {
        read_routes(&random);
        if (torture_below(&random, 50) == 0)
            walk();
    }
    return NULL;
}

/* -------------------------------------------------------------------------------------- writers */

static void add(uint64_t route)
{
    const struct prudence_routes_prefix prefix = prefix_of(route);

    TORTURE_CHECK(prudence_routes_add(table, &prefix, (uintptr_t)object_make(route), NULL) == 0);
}

static void drop(uint64_t route)
{
    const struct prudence_routes_prefix prefix = prefix_of(route);
    uintptr_t old;
    int error = prudence_routes_erase(table, &prefix, &old);

    if (error)
        torture_violation("a prefix of this thread's is not there to be removed");
    else
        object_retire((void *)old);
}

static void replace(uint64_t route)
{
    const struct prudence_routes_prefix prefix = prefix_of(route);
    uintptr_t old;

    TORTURE_CHECK(prudence_routes_replace(table, &prefix, (uintptr_t)object_make(route), &old) ==
                  0);
    object_retire((void *)old);
}

/* Returns a prefix that a writer may add: one of 3 short ones of its own lengths, some far from
 * all lasting ones, most among them. If two writers add the same one, only one succeeds. */
static uint64_t own_route(unsigned writer, unsigned i)
{
    const uint32_t bits = i * 2654435761u, near = 0x0a000000 | (bits & 0x3ff000) | writer << 8;

    if (i < 3)
        return ROUTE(0, writer * 3 + i);
    if (i % 5 == 0)
        return ROUTE((bits | 0x80000000) & 0xffffe000, 19);
    return i % 7 ? ROUTE(near, 24) : ROUTE(near | 0x20, 28);
}

static void update_own(unsigned writer, unsigned char *mine, uint64_t *random)
{
    const unsigned i = torture_below(random, OWN);
    const uint64_t route = own_route(writer, i);
    const struct prudence_routes_prefix prefix = prefix_of(route);

    if (!mine[i]) {
        void *object = object_make(route);

        if (!prudence_routes_add(table, &prefix, (uintptr_t)object, NULL)) {
            mine[i] = 1;
        } else { /* the prefix exists */
            object_unmake(object);
        }
    } else if (torture_below(random, 2)) {
        replace(route);
    } else {
        drop(route);
        mine[i] = 0;
    }
}

/* Adds the short prefix before it removes the long one, and the reverse. */
static void swap_either(unsigned writer)
{
    const uint64_t shorter = ROUTE(EITHER(writer), 20), longer = ROUTE(EITHER(writer), 28);

    add(shorter);
    drop(longer);
    add(longer);
    drop(shorter);
}

static void *writer(void *number)
{
    const unsigned self = (unsigned)(uintptr_t)number;
    uint64_t random = self + 4711;
    unsigned char *mine = calloc(OWN, 1);

    while (!torture_stopped()) {
        for (unsigned i = 0; i < 20; i++)
            update_own(self, mine, &random);
        swap_either(self);
        __atomic_fetch_add(&updates, 24, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < OWN; i++)
        if (mine[i])
            drop(own_route(self, i));
    free(mine);
    return NULL;
}

/* ------------------------------------------------------------------------------------------ all */

static void set_up(const char *variant)
{
    struct prudence_routes_attr attr = {.size = sizeof attr};

    is_ipv6 = !strcmp(variant, "ipv6");
    attr.family = is_ipv6 ? PRUDENCE_ROUTES_IPV6 : PRUDENCE_ROUTES_IPV4;
    attr.prefixes = strcmp(variant, "wide") ? 0 : 1 << 17;
    readers_stay = !strcmp(variant, "limit");
    table = prudence_routes_create("torture", &attr);
    cache = prudence_cache_create("torture", sizeof(struct torture_object), NULL);
    for (unsigned i = 0; i < LASTING; i++) {
        add(ROUTE(0x0a000000 + (i << 16), 16));
        add(ROUTE(0x0a000001 + (i << 16), 32));
    }
    for (unsigned i = 0; i < WRITERS; i++)
        add(ROUTE(EITHER(i), 28));
}

static void tear_down(void)
{
    struct prudence_routes_walk at;
    unsigned left = 0;
    uintptr_t value;

    prudence_routes_for_each(&at, table, NULL, value)
    {
        TORTURE_CHECK(prudence_routes_erase(table, &at.prefix, NULL) == 0);
        TORTURE_CHECK(prudence_routes_erase(table, &at.prefix, NULL) == ENOENT);
        object_retire((void *)value);
        left++;
    }
    TORTURE_CHECK(left == 2 * LASTING + WRITERS);
    TORTURE_CHECK(prudence_routes_count(table) == 0);
    TORTURE_CHECK(prudence_routes_destroy(table) == 0);
    TORTURE_CHECK(prudence_cache_destroy(cache) == 0);
}

static int torture(const char *variant, double seconds)
{
    uint64_t end = torture_end_of(seconds);
    struct prudence_routes_stats stats;

    set_up(variant);
    torture_start(reader, READERS, 1);
    torture_start(writer, WRITERS, 0);
    torture_sleep_until(end);
    torture_wait_for(&walks);
    torture_join();
    prudence_routes_stats(table, &stats);
    tear_down();
    if (readers_stay)
        torture_check_limit();
    TORTURE_SAY({"updates", updates}, {"lookups", lookups}, {"walks", walks},
                {"retired", torture_found_retired}, {"index bits", stats.index_bits});
    return torture_end(variant);
}

TORTURE(torture, {"growing", ""}, {"wide", ""}, {"ipv6", ""}, {"fenced", "reader_mode=fenced"},
        {"lock", "rseq=0"}, {"limit", "latent_limit=2M,wait_max=60s"})
