/* SPDX-License-Identifier: MIT */
/* Tables of routes, beyond the contract of all tables (test_contract.c): bad arguments, statistics,
 * nodes that wait for readers, concurrent updates. */
#include "tables/route_room.h"
#include "tables/route_words.h"
#include "support/routes_test.h"
#include "support/threads.h"
#include "support/stats.h"
static int add(struct prudence_routes *table, const char *text, uintptr_t value)
{
    const struct prudence_routes_prefix prefix = prefix_of(text);

    return prudence_routes_add(table, &prefix, value, NULL);
}

static int drop(struct prudence_routes *table, const char *text)
{
    const struct prudence_routes_prefix prefix = prefix_of(text);

    return prudence_routes_erase(table, &prefix, NULL);
}

static uintptr_t route(const struct prudence_routes *table, const char *text)
{
    const struct address address = address_of(text);

    return route_to(table, &address);
}

static void expect_refused(struct prudence_routes *table,
                           const struct prudence_routes_prefix *prefix)
{
    struct prudence_routes_walk walk;
    uintptr_t there = 77, replaced = 77, erased = 77;

    assert_int_equal(prudence_routes_add(table, prefix, 1, &there), EINVAL);
    assert_int_equal(prudence_routes_replace(table, prefix, 1, &replaced), EINVAL);
    assert_int_equal(prudence_routes_erase(table, prefix, &erased), EINVAL);
    assert_int_equal(prudence_routes_get(table, prefix), 0);
    assert_true(!there && !replaced && !erased);
    if (prefix)
        assert_int_equal(prudence_routes_first(&walk, table, prefix), 0);
}

/* After the last reader nothing waits. */
static void end_without_readers(struct prudence_routes *table, struct prudence_domain *domain)
{
    all_readers_leave(domain);
    assert_int_equal(routes_stats_of(table).bytes_latent, 0);
    assert_int_equal(prudence_routes_destroy(table), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(bad_prefixes_are_refused)
{
    struct prudence_routes *ipv4 = routes_of(PRUDENCE_ROUTES_IPV4, 0, NULL),
                           *ipv6 = routes_of(PRUDENCE_ROUTES_IPV6, 0, NULL);
    struct prudence_routes_prefix prefix;

    assert_int_equal(add(ipv4, "0.0.0.0/0", 5), 0);
    assert_int_equal(add(ipv6, "::/0", 5), 0);
    expect_refused(ipv4, NULL);
    prefix = prefix_of("10.0.0.0/33");
    expect_refused(ipv4, &prefix);
    prefix = prefix_of("10.0.0.0/4294967295");
    expect_refused(ipv4, &prefix);
    prefix = prefix_of("::/129");
    expect_refused(ipv6, &prefix);
    for (unsigned length = 0; length < 128; length++) { /* one bit after the length */
        prefix = (struct prudence_routes_prefix){.length = length};
        prefix.address[length / 8] = (unsigned char)(0x80u >> length % 8);
        expect_refused(ipv6, &prefix);
        if (length < 32)
            expect_refused(ipv4, &prefix);
        prefix.address[length / 8] = 0;
        prefix.address[15] = 1;
        expect_refused(ipv6, &prefix);
    }
    prefix = prefix_of("10.0.0.0/8"); /* IPv4 ignores bytes after the first 4 */
    prefix.address[4] = 1;
    assert_int_equal(prudence_routes_add(ipv4, &prefix, 1, NULL), 0);
    assert_int_equal(drop(ipv4, "10.0.0.0/8"), 0);
    prefix = prefix_of("10.0.0.0/8");
    assert_int_equal(prudence_routes_add(ipv4, &prefix, 0, NULL), EINVAL);
    assert_int_equal(prudence_routes_add(ipv4, &prefix, (uintptr_t)1 << 63, NULL), EINVAL);
    assert_int_equal(prudence_routes_replace(ipv4, &prefix, 0, NULL), EINVAL);
    assert_int_equal(prudence_routes_replace(ipv4, &prefix, UINTPTR_MAX, NULL), EINVAL);
    assert_int_equal(prudence_routes_count(ipv4), 1);
    assert_int_equal(prudence_routes_count(ipv6), 1);
    assert_int_equal(prudence_routes_destroy(ipv4), 0);
    assert_int_equal(prudence_routes_destroy(ipv6), 0);
}

TEST(values_are_whole)
{
    static int object;
    struct prudence_routes *table = prudence_routes_create("test", NULL);
    const uintptr_t most = ((uintptr_t)1 << 63) - 1;

    assert_int_equal(add(table, "0.0.0.0/0", most), 0);
    assert_int_equal(add(table, "10.0.0.0/7", (uintptr_t)&object), 0);
    assert_int_equal(add(table, "10.1.1.1/32", 1), 0);
    assert_int_equal(route(table, "10.1.1.0"), (uintptr_t)&object);
    assert_int_equal(route(table, "10.1.1.1"), 1);
    assert_int_equal(route(table, "1.1.1.1"), most);
    assert_int_equal(add(table, "10.1.1.1/32", 2), EEXIST);
    assert_int_equal(drop(table, "10.1.1.0/30"), ENOENT);
    assert_int_equal(drop(table, "10.1.1.0/31"), ENOENT);
    assert_int_equal(drop(table, "77.1.1.1/32"), ENOENT);
    assert_int_equal(route(table, "10.1.1.1"), 1);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

/* --------------------------------------------------------------------------------- latent nodes */

/* Returns the last node on the way to this prefix, which an update of the prefix replaces. */
static const struct route_node *last_node(const struct prudence_routes *public,
                                          const struct prudence_routes_prefix *prefix)
{
    const struct route_table *table = route_table_of(public);
    const struct route_node *node = table->root;
    route_key key;

    assert_true(route_prefix_key(table, prefix, &key));
    for (unsigned level = 0; level < route_level_of(prefix->length) &&
                             route_has(node->children, route_slot(key, level));) {
        const uint64_t edge = route_child_edge(node, route_slot(key, level));

        level += 1 + route_edge_levels(edge);
        if (!route_is_on_the_way(edge, level, key, route_level_of(prefix->length)))
            break;
        node = route_edge_node(edge);
    }
    return node;
}

#define KEPT 200u

/* A replaced node is not written while readers of it exist, whatever updates do around it. */
static void replaced_nodes_stay(unsigned family)
{
    static struct {
        const struct route_node *node;
        uint64_t copy[130];
        size_t bytes;
    } kept[KEPT];
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(family, 0, domain);
    uint64_t deferred = 0;

    for (unsigned i = 0; i < KEPT; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {family ? 0x20 : 10, 0, (unsigned char)i, 0, (unsigned char)(i * 16)},
            .length = family ? 40 : 24};

        kept[i].node = last_node(table, &prefix);
        kept[i].bytes = sizeof *kept[i].node + route_node_words(kept[i].node) * sizeof(uint64_t);
        memcpy(kept[i].copy, kept[i].node, kept[i].bytes);
        assert_int_equal(prudence_routes_add(table, &prefix, 1 + i, NULL), 0);
        if (i % 32 == 31) {
            assert_int_equal(add(table, family ? "::/0" : "0.0.0.0/0", 7), 0);
            assert_int_equal(drop(table, family ? "::/0" : "0.0.0.0/0"), 0);
        }
        if (i > 0)
            assert_true(routes_stats_of(table).bytes_latent > deferred);
        deferred = routes_stats_of(table).bytes_latent;
    }
    for (unsigned i = 0; i < KEPT; i++)
        assert_memory_equal(kept[i].node, kept[i].copy, kept[i].bytes);
    all_readers_leave(domain);
    assert_int_equal(routes_stats_of(table).bytes_latent, 0);
    check_trie(table);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_routes_destroy(table), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(replaced_nodes_stay_as_they_are)
{
    replaced_nodes_stay(PRUDENCE_ROUTES_IPV4);
    replaced_nodes_stay(PRUDENCE_ROUTES_IPV6);
}

/* Cutting an edge defers the node at its end; joining two defers the node in their middle.
 * Replaced slots of shortcuts are latent. */
TEST(what_ipv6_defers)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV6, 1 << 11, domain);
    const uintptr_t shortcuts = table->shortcuts;
    uint64_t before = 0, replaced = round_up(route_words_bytes(shortcuts), os_page_size);

    assert_int_equal(add(table, "2001:db8:1::/48", 1), 0);
    all_readers_leave(domain);
    assert_int_equal(add(table, "2001:db8::/32", 2), 0);
    assert_int_equal(routes_stats_of(table).bytes_latent, 64);
    assert_int_equal(drop(table, "2001:db8::/32"), 0);
    assert_int_equal(routes_stats_of(table).bytes_latent, 2 * 64);
    all_readers_leave(domain);
    for (unsigned i = 0; table->shortcuts == shortcuts; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {0x24, 0, (unsigned char)(i >> 5), (unsigned char)(i << 3)}, .length = 32};

        before = routes_stats_of(table).bytes_latent;
        assert_true(i < 4096);
        assert_int_equal(prudence_routes_add(table, &prefix, 3, NULL), 0);
    }
    assert_in_range(routes_stats_of(table).bytes_latent, before + replaced,
                    before + replaced + 1088);
    assert_int_equal(slots_in_use(route_table_of(table)) > 700, 1);
    check_trie(table);
    end_without_readers(table, domain);
}

/* The first index lies in the table, where it stays. */
TEST(the_first_index_is_never_latent)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 0, domain);
    uint64_t before = 0;

    for (unsigned i = 0; i < 256; i++) {
        const struct prudence_routes_prefix prefix = {.address = {(unsigned char)i}, .length = 8};

        before = routes_stats_of(table).bytes_latent;
        assert_int_equal(routes_stats_of(table).index_bits, 7);
        assert_int_equal(prudence_routes_add(table, &prefix, 1 + i, NULL), 0);
    }
    assert_int_equal(routes_stats_of(table).index_bits, 13);
    assert_in_range(routes_stats_of(table).bytes_latent, before, before + 1056);
    end_without_readers(table, domain);
}

#define AREA_BYTES 32768u

/* Adds prefixes of 28 bits, one a network of 24, until the table has this number. */
static void fill_with_sites(struct prudence_routes *table, unsigned count)
{
    struct prudence_routes_prefix prefix = {.address = {10}, .length = 28};

    for (unsigned i = (unsigned)prudence_routes_count(table); i < count; i++) {
        prefix.address[1] = (unsigned char)(i >> 8);
        prefix.address[2] = (unsigned char)i;
        assert_int_equal(prudence_routes_add(table, &prefix, 1 + i, NULL), 0);
    }
}

/* Sites of 10.0.0.0/8: there is an area for each 2,048 of them, while the table is small. Then a
 * reader may still be in the old index and in the areas. */
TEST(a_small_table_has_areas)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 1 << 11, domain);
    const struct route_table *inside = route_table_of(table);
    struct prudence_routes_stats stats = routes_stats_of(table);
    const uint64_t live = stats.bytes_live - stats.nodes * 32;
    const route_key key = (route_key)10 << 120;

    fill_with_sites(table, 14);
    assert_int_equal(inside->areas, 0);
    fill_with_sites(table, 15);
    assert_int_equal(inside->areas, 1);
    assert_int_equal(routes_stats_of(table).bytes_live,
                     live + AREA_BYTES + inside->node_bytes + route_room_spare_bytes(inside));
    route_area_add(route_table_of(table), key); /* for another update that asked for it, too */
    assert_int_equal(inside->areas, 1);
    check_trie(table);
    fill_with_sites(table, ROUTE_AREA_PREFIXES - 1);
    assert_int_equal(inside->areas, 4);
    all_readers_leave(domain);
    assert_int_equal(routes_stats_of(table).bytes_latent, 0);
    assert_int_equal(add(table, "20.0.0.0/28", 5), 0);
    assert_int_equal(inside->areas, 0);
    assert_int_equal(table->index & PRUDENCE_ROUTES_AREAS, 0);
    route_area_add(route_table_of(table), key); /* for one that asked before */
    assert_int_equal(inside->areas, 0);
    assert_in_range(routes_stats_of(table).bytes_latent, 4 * AREA_BYTES + 65536,
                    4 * AREA_BYTES + 65536 + 1056);
    assert_int_equal(route(table, "10.31.254.1"), 8191);
    check_trie(table);
    end_without_readers(table, domain);
}

/* Programs that were built with an earlier version read the index as it was then. */
TEST(a_table_of_an_earlier_program_has_no_areas)
{
    const struct prudence_routes_attr attr = {.size = sizeof attr, .prefixes = 1 << 11};
    struct prudence_routes *table = prudence_routes2_create("early", &attr);

    assert_non_null(table);
    fill_with_sites(table, 300);
    assert_int_equal(table->index & 63, 13);
    assert_int_equal(route(table, "10.1.0.1"), 257);
    check_trie(table);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

/* Further networks are found without areas. Those of the table go with it. */
TEST(areas_are_limited)
{
    const struct prudence_stats before = stats_now();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 1 << 11, NULL);
    struct prudence_routes_prefix prefix = {.length = 24};
    struct prudence_stats after;

    for (unsigned char first = 0; first < ROUTE_AREAS_MOST; first++)
        make_area(table, first, 0);
    for (prefix.address[0] = 100; prefix.address[2] < 32; prefix.address[2]++)
        assert_int_equal(prudence_routes_add(table, &prefix, 7, NULL), 0);
    assert_int_equal(route_table_of(table)->areas, ROUTE_AREAS_MOST);
    route_area_add(route_table_of(table), (route_key)100 << 120); /* for one that asked before */
    assert_int_equal(route_table_of(table)->areas, ROUTE_AREAS_MOST);
    assert_int_equal(route(table, "100.0.31.1"), 7);
    check_trie(table);
    assert_int_equal(prudence_routes_destroy(table), 0);
    prudence_stats(&after);
    assert_int_equal(after.objects_live, before.objects_live);
}

/* The second shortcuts are a page, of which a quarter of the slots are used. */
TEST(replaced_shortcuts_are_latent)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV6, 0, domain);
    uint64_t before = 0, page = round_up(4096, os_page_size);

    for (unsigned i = 0; i < 256; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {0x20, 0x01, (unsigned char)i, 1, 1, 1}, .length = 48};

        before = routes_stats_of(table).bytes_latent;
        assert_int_equal(prudence_routes_add(table, &prefix, 1 + i, NULL), 0);
    }
    assert_in_range(routes_stats_of(table).bytes_latent, before + page, before + page + 2048);
    end_without_readers(table, domain);
}

/* The worst updates, of prefixes that contain all others, leave no more garbage than the least. */
TEST(an_update_defers_little)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV4, 1 << 11, domain);
    uint64_t before;

    for (unsigned i = 0; i < 65536; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {10, (unsigned char)(i >> 8), (unsigned char)i}, .length = 24};

        assert_int_equal(prudence_routes_add(table, &prefix, 1, NULL), 0);
    }
    all_readers_leave(domain);
    before = routes_stats_of(table).bytes_latent;
    assert_int_equal(add(table, "10.0.0.0/8", 2), 0);
    assert_int_equal(add(table, "0.0.0.0/0", 3), 0);
    assert_int_equal(route(table, "10.1.2.3"), 1);
    assert_int_equal(drop(table, "10.1.2.0/24"), 0);
    assert_int_equal(route(table, "10.1.2.3"), 2);
    assert_int_equal(drop(table, "10.0.0.0/8"), 0);
    assert_int_equal(route(table, "10.1.2.3"), 3);
    assert_int_equal(drop(table, "0.0.0.0/0"), 0);
    assert_int_equal(route(table, "10.1.2.3"), 0);
    assert_true(routes_stats_of(table).bytes_latent <= before + 5 * 1040);
    all_readers_leave(domain);
    assert_int_equal(prudence_routes_destroy(table), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

TEST(statistics_add_up)
{
    struct prudence_routes *table = prudence_routes_create("test", NULL);
    struct prudence_routes_stats stats = routes_stats_of(table);
    const uint64_t empty = stats.bytes_live;

    assert_int_equal(stats.nodes, 1);
    assert_int_equal(stats.index_bits, 7);
    assert_int_equal(stats.prefixes, 0);
    assert_int_equal(add(table, "10.1.2.3/32", 1), 0);
    stats = routes_stats_of(table);
    assert_int_equal(stats.nodes, 7);
    assert_int_equal(stats.bytes_live, empty + (6 + 1) * 32); /* one is spare */
    assert_int_equal(drop(table, "10.1.2.3/32"), 0);
    stats = routes_stats_of(table);
    assert_int_equal(stats.nodes, 1);
    assert_int_equal(stats.bytes_live, empty + 32);
    assert_int_equal(stats.refused, 0);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

TEST(the_next_update_takes_the_spare_node)
{
    const struct prudence_stats before = stats_now();
    struct prudence_routes *table = prudence_routes_create("test", NULL);
    struct route_node **spare = &route_table_of(table)->spares[1]; /* 48 bytes: up to 4 words */
    const struct prudence_routes_prefix prefix = prefix_of("10.0.2.0/24");
    const struct route_node *taken;
    struct prudence_stats after;

    assert_int_equal(add(table, "10.0.0.0/24", 1), 0); /* 2 words; 32 bytes */
    assert_null(*spare);
    assert_int_equal(add(table, "10.0.1.0/24", 1), 0); /* 3 words */
    taken = *spare;
    assert_non_null(taken);
    assert_int_equal(route_room_spare_bytes(route_table_of(table)), 32 + 48);
    assert_int_equal(add(table, "10.0.2.0/24", 1), 0);
    assert_ptr_equal(last_node(table, &prefix), taken);
    assert_non_null(*spare);
    assert_ptr_not_equal(*spare, taken);
    assert_int_equal(drop(table, "10.0.7.0/24"), ENOENT); /* takes nothing */
    assert_int_equal(route_room_spare_bytes(route_table_of(table)), 32 + 48);
    check_trie(table);
    assert_int_equal(prudence_routes_destroy(table), 0);
    prudence_stats(&after);
    assert_int_equal(after.objects_live, before.objects_live);
}

/* ------------------------------------------------------------------------------------- the rest */

/* Walks pairs. The second of a pair, which the walk has found, is removed, and the first moves
 * up to the place of their common node. */
TEST(a_walk_does_not_go_back)
{
    struct prudence_routes *table = routes_of(PRUDENCE_ROUTES_IPV6, 0, NULL);
    struct prudence_routes_prefix prefix = {.length = 48};
    struct prudence_routes_walk walk;
    unsigned found = 0;
    uintptr_t value;

    for (unsigned i = 0; i < 200; i++) {
        prefix.address[0] = (unsigned char)(i / 2);
        prefix.address[4] = (unsigned char)(i % 2);
        assert_int_equal(prudence_routes_add(table, &prefix, 1 + i, NULL), 0);
    }
    prudence_routes_for_each(&walk, table, NULL, value)
    {
        assert_int_equal(value, ++found);
        if (found % 2 == 0)
            assert_int_equal(prudence_routes_erase(table, &walk.prefix, NULL), 0);
    }
    assert_int_equal(found, 200);
    check_trie(table);
    assert_int_equal(prudence_routes_destroy(table), 0);
}

/* ---------------------------------------------------------------------------- at the same time */

/* After each addition to a multiple of this count, the table checks, without the lock, whether
 * its arrays are large enough. */
#define LOOKS_AT 256u

static struct prudence_routes *shared;

static void *add_and_drop(void *text)
{
    for (unsigned i = 0; i < 2000; i++) {
        assert_int_equal(add(shared, text, 1), 0);
        assert_int_equal(drop(shared, text), 0);
    }
    return NULL;
}

/* Lets ThreadSanitizer find a count that is stored as a plain variable. The two prefixes part
 * from the others above the level of the shortcuts. */
TEST(counts_are_read_during_updates)
{
    static char texts[2][16] = {"2400::/48", "2800::/48"};
    const struct prudence_stats before = stats_now();
    struct prudence_stats after;
    char text[24];
    pthread_t threads[2];

    shared = routes_of(PRUDENCE_ROUTES_IPV6, 0, NULL);
    for (unsigned i = 0; i < LOOKS_AT - 1; i++) {
        snprintf(text, sizeof text, "2001:db8:%x::/48", i);
        assert_int_equal(add(shared, text, 1), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_drop, texts[i]), 0);
    threads_join(threads, 2);
    assert_int_equal(prudence_routes_count(shared), LOOKS_AT - 1);
    assert_int_equal(prudence_routes_destroy(shared), 0);
    prudence_stats(&after); /* no spare node was lost when both threads left one */
    assert_int_equal(after.objects_live, before.objects_live);
}

SUITE(pin_thread())
