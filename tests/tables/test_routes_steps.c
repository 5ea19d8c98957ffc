/* SPDX-License-Identifier: MIT */
/*
 * Routes between any two instructions: readers look up between those of an update, updates happen
 * at any two of those of a lookup, and one update happens inside another. Each lookup's answer was
 * right at some moment during the lookup.
 *
 * ctest: cost 8
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "tables/route_words.h"
#include "support/routes_test.h"

#include "support/deep.h"
#include "support/step.h"

/* -------------------------------------------------------------------------------------- updates */

enum kind { ADD, REPLACE, REMOVE };

struct update {
    enum kind kind;
    const char *prefix;
    uintptr_t value;
};

static void apply(struct prudence_routes *table, const struct update *update)
{
    const struct prudence_routes_prefix prefix = prefix_of(update->prefix);

    switch (update->kind) {
    case ADD:
        assert_int_equal(prudence_routes_add(table, &prefix, update->value, NULL), 0);
        break;
    case REPLACE:
        assert_int_equal(prudence_routes_replace(table, &prefix, update->value, NULL), 0);
        break;
    case REMOVE:
        assert_int_equal(prudence_routes_erase(table, &prefix, NULL), 0);
    }
}

static void revert(struct prudence_routes *table, const struct update *update, uintptr_t before)
{
    const struct update back = {update->kind == ADD      ? REMOVE
                                : update->kind == REMOVE ? ADD
                                                         : REPLACE,
                                update->prefix, before};

    apply(table, &back);
}

static uintptr_t value_of(const struct prudence_routes *table, const struct update *update)
{
    const struct prudence_routes_prefix prefix = prefix_of(update->prefix);

    return prudence_routes_get(table, &prefix);
}

/* Makes a table of prefixes with values 100, 101, ... */
static struct prudence_routes *table_with(unsigned family, uint64_t prefixes,
                                          const char *const *texts)
{
    struct prudence_routes *table = routes_of(family, prefixes, NULL);

    for (unsigned i = 0; texts[i]; i++) {
        const struct prudence_routes_prefix prefix = prefix_of(texts[i]);

        assert_int_equal(prudence_routes_add(table, &prefix, 100 + i, NULL), 0);
    }
    return table;
}

static const char *const few4[] = {"0.0.0.0/1",    "10.0.0.0/8",  "10.1.0.0/16",  "10.1.2.0/24",
                                   "10.1.2.64/26", "10.1.2.3/32", "192.0.2.0/24", NULL};
static const char *const at4[] = {"1.2.3.4",    "10.0.0.1",  "10.1.1.1",   "10.1.2.1",
                                  "10.1.2.3",   "10.1.2.65", "10.1.3.200", "192.0.2.7",
                                  "200.1.2.77", "255.0.0.1", "12.0.0.0",   NULL};
static const struct update updates4[] = {
    {ADD, "0.0.0.0/0", 1},       {ADD, "10.0.0.0/9", 2},      {ADD, "10.1.0.0/19", 3},
    {ADD, "10.1.2.0/25", 4},     {ADD, "200.1.2.77/32", 5},   {ADD, "12.0.0.0/6", 6},
    {ADD, "10.1.3.192/27", 7},   {ADD, "255.0.0.0/13", 8},    {REMOVE, "0.0.0.0/1", 0},
    {REMOVE, "10.0.0.0/8", 0},   {REMOVE, "10.1.2.0/24", 0},  {REMOVE, "10.1.2.3/32", 0},
    {REMOVE, "10.1.2.64/26", 0}, {REMOVE, "192.0.2.0/24", 0}, {REMOVE, "10.1.0.0/16", 0},
    {REPLACE, "0.0.0.0/1", 9},   {REPLACE, "10.0.0.0/8", 10}, {REPLACE, "10.1.2.3/32", 11},
};

static const char *const few6[] = {"2000::/3",          "2001:db8::/32",       "2001:db8:1::/48",
                                   "2001:db8:1:2::/64", "2001:db8:1:2::3/128", NULL};
static const char *const at6[] = {"2002::",
                                  "2001:db8::1",
                                  "2001:db8:1::1",
                                  "2001:db8:1:2::1",
                                  "2001:db8:1:2::3",
                                  "2001:db8:1:2:8000::3",
                                  "fe80::1",
                                  "::",
                                  "2001:db8:7:7:7:7:7:7",
                                  "2001:db8:1:4::1",
                                  "2001:db8:1:8000::1",
                                  "2001:dc0::1",
                                  "2001:dbb::1",
                                  "2001:db8:c000::1",
                                  NULL};
static const struct update updates6[] = {
    {ADD, "::/0", 1},
    {ADD, "2001:db8:1:2:8000::/65", 2},
    {ADD, "2001:db8:7:7:7:7:7:7/128", 3},
    {ADD, "2001:db8::/35", 4},
    {ADD, "2001:dc0::/28", 6},        /* leaves an edge above the level of shortcuts, ... */
    {ADD, "2001:db8:1:8000::/56", 7}, /* ... below it, ... */
    {ADD, "2001:db8:1::/56", 8},      /* ... is in the middle of an edge, ... */
    {ADD, "2001:db8::/30", 9},        /* ... and of an edge across that level */
    {ADD, "2001:db8:c000::/34", 10},  /* a node that has a shortcut is copied */
    {REMOVE, "2001:db8:1::/48", 0},   /* two edges become one */
    {REMOVE, "2001:db8::/32", 0},     /* two edges across that level become one */
    {REMOVE, "2000::/3", 0},
    {REMOVE, "2001:db8:1:2::3/128", 0},
    {REMOVE, "2001:db8:1:2::/64", 0},
    {REPLACE, "2001:db8:1::/48", 5},
};

#define PLACES 16u

static struct prudence_routes *stepped;
static struct address addresses[PLACES];
static uintptr_t before[PLACES], after[PLACES], last[PLACES];
static unsigned places, looks;

static void look_at_all(uintptr_t *values)
{
    prudence_read_lock();
    for (unsigned i = 0; i < places; i++)
        values[i] = route_to(stepped, &addresses[i]);
    prudence_read_unlock();
}

static void take_addresses(const char *const *texts)
{
    for (places = 0; texts[places]; places++)
        addresses[places] = address_of(texts[places]);
}

/* Plays a reader that missed its node in the slot some time ago, and continues from the index. */
static uintptr_t slow_route_to(const struct address *address)
{
    static const uint64_t nothing[64] __attribute__((aligned(64)));
    const struct prudence_routes slow = {.index = stepped->index,
                                         .shortcuts = (uintptr_t)nothing | 6};

    return is_ipv6(stepped) ? prudence_routes_lookup_ipv6(&slow, address->bytes)
                            : prudence_routes_lookup_ipv4(&slow, address->bytes);
}

/* The same by one call, if there is one for the family. */
static void look_together(uintptr_t *values)
{
    unsigned char packed[4 * PLACES];

    if (is_ipv6(stepped)) {
        look_at_all(values);
        return;
    }
    for (unsigned i = 0; i < places; i++)
        memcpy(packed + 4 * i, addresses[i].bytes, 4);
    prudence_read_lock();
    prudence_routes_lookup_many_ipv4(stepped, packed, places, values);
    prudence_read_unlock();
}

static void look(const greg_t *registers)
{
    uintptr_t now[PLACES], slow[PLACES], together[PLACES];

    prudence_read_lock();
    for (unsigned i = 0; i < places; i++)
        slow[i] = slow_route_to(&addresses[i]);
    prudence_read_unlock();
    look_together(together);
    look_at_all(now);
    for (unsigned i = 0; i < places; i++) {
        if (now[i] != before[i] && now[i] != after[i])
            fail_msg("address %u: %zu, not %zu or %zu", i, now[i], before[i], after[i]);
        if (now[i] != last[i] && now[i] != after[i])
            fail_msg("address %u: back from %zu to %zu", i, last[i], now[i]);
        if (slow[i] != before[i] && slow[i] != now[i])
            fail_msg("address %u: back from %zu of a slow reader to %zu", i, slow[i], now[i]);
        if (together[i] != now[i])
            fail_msg("address %u: %zu with others, %zu alone", i, together[i], now[i]);
        last[i] = now[i];
    }
    looks++;
}

static void walk_and_look(const greg_t *registers)
{
    struct prudence_routes_walk walk;
    unsigned found = 0;
    uintptr_t value;

    look(registers);
    prudence_routes_for_each(&walk, stepped, NULL, value) found++;
    if (found + 1 < prudence_routes_count(stepped) || found > prudence_routes_count(stepped) + 1)
        fail_msg("a walk finds %u", found);
}

static void apply_stepped(void *update)
{
    apply(stepped, update);
}

static void make_areas(void)
{
    make_area(stepped, 10, 1);
    make_area(stepped, 192, 0);
    make_area(stepped, 200, 1);
}

static void step_updates(unsigned family, uint64_t prefixes, bool has_areas,
                         const struct update *updates, unsigned count)
{
    stepped = table_with(family, prefixes, family ? few6 : few4);
    if (has_areas)
        make_areas();
    take_addresses(family ? at6 : at4);
    for (unsigned i = 0; i < count; i++) {
        struct update update = updates[i];
        const uintptr_t value = value_of(stepped, &update);

        look_at_all(before);
        apply(stepped, &update);
        look_at_all(after);
        assert_memory_not_equal(before, after, sizeof before);
        revert(stepped, &update, value);
        look_at_all(last);
        assert_memory_equal(last, before, places * sizeof last[0]);
        step_through(apply_stepped, &update, prefixes > 1 << 11 ? look : walk_and_look);
        assert_memory_equal(last, after, places * sizeof last[0]);
        revert(stepped, &update, value);
    }
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

TEST(an_update_is_one_step_for_each_address)
{
    step_updates(PRUDENCE_ROUTES_IPV4, 0, false, updates4, COUNT(updates4));
    step_updates(PRUDENCE_ROUTES_IPV6, 0, false, updates6, COUNT(updates6));
    assert_true(looks > 20000);
}

TEST(so_it_is_with_wider_indexes)
{
    /* Skips updates that write thousands of words of the index. */
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 11, false, updates4 + 2, 4);
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 11, false, updates4 + 10, 4);
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 11, true, updates4 + 3, 2);
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 11, true, updates4 + 10, 4);
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 17, false, updates4 + 2, 3);
    step_updates(PRUDENCE_ROUTES_IPV4, 1 << 17, false, updates4 + 10, 4);
    step_updates(PRUDENCE_ROUTES_IPV6, 1 << 11, false, updates6 + 1, 3);
    step_updates(PRUDENCE_ROUTES_IPV6, 1 << 17, false, updates6 + 12, 3);
}

/* Adds prefixes far from the others; each IPv6 prefix has a separate shortcut. */
static void fill_up(unsigned count)
{
    for (unsigned i = 0; prudence_routes_count(stepped) < count; i++) {
        const struct prudence_routes_prefix prefix = {
            .address = {(unsigned char)(100 + i / 256), (unsigned char)i, 0, 0},
            .length = is_ipv6(stepped) ? 48 : 16};

        assert_int_equal(prudence_routes_add(stepped, &prefix, 1000 + i, NULL), 0);
    }
}

/* An update that widens the index, and gives shortcuts more slots, changes nothing else. */
static void step_to_wider_arrays(unsigned family, struct update update)
{
    uintptr_t shortcuts;

    stepped = table_with(family, 0, family ? few6 : few4);
    fill_up(255);
    shortcuts = stepped->shortcuts;
    take_addresses(family ? at6 : at4);
    look_at_all(before);
    memcpy(after, before, sizeof after);
    memcpy(last, before, sizeof last);
    assert_int_equal(routes_stats_of(stepped).index_bits, 7);
    step_through(apply_stepped, &update, look);
    assert_int_equal(routes_stats_of(stepped).index_bits, 13);
    assert_true(route_words_bits(stepped->shortcuts) > route_words_bits(shortcuts) || !family);
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

TEST(a_wider_index_is_one_step)
{
    step_to_wider_arrays(PRUDENCE_ROUTES_IPV4, (struct update){ADD, "9.9.9.9/32", 7});
    step_to_wider_arrays(PRUDENCE_ROUTES_IPV6, (struct update){ADD, "9999::/48", 7});
}

/* An update that makes an area changes nothing else. */
TEST(an_area_is_one_step)
{
    struct update update = {ADD, "10.1.255.0/24", 7};
    struct prudence_routes_prefix prefix = {.address = {10, 1, 224}, .length = 24};

    stepped = table_with(PRUDENCE_ROUTES_IPV4, 1 << 11, few4);
    for (; prefix.address[2] < 224 + ROUTE_AREA_WORDS - 2; prefix.address[2]++)
        assert_int_equal(prudence_routes_add(stepped, &prefix, 1, NULL), 0);
    take_addresses(at4);
    look_at_all(before);
    memcpy(after, before, sizeof after);
    memcpy(last, before, sizeof last);
    assert_int_equal(route_table_of(stepped)->areas, 0);
    step_through(apply_stepped, &update, look);
    assert_int_equal(route_table_of(stepped)->areas, 1);
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* -------------------------------------------------------------------------------------- lookups */

/* Two updates, run at two instructions of one lookup. */
static const struct update *first_update, *second_update;
static unsigned here, there, instruction;
static uintptr_t answers[3], found;
static bool is_together; /* the lookup is one of several in a call */

static void happen(const greg_t *registers)
{
    if (instruction == here)
        apply(stepped, first_update);
    if (instruction == there) {
        apply(stepped, second_update);
        step_enough = true;
    }
    instruction++;
}

static void look_up_stepped(void *address)
{
    unsigned char packed[8] = {10, 1, 2, 1};
    uintptr_t values[2];

    if (is_together) {
        memcpy(packed + 4, address, 4);
        prudence_routes_lookup_many_ipv4(stepped, packed, 2, values);
        found = values[1];
    } else {
        found = is_ipv6(stepped) ? prudence_routes_lookup_ipv6(stepped, address)
                                 : prudence_routes_lookup_ipv4(stepped, address);
    }
}

static void park(struct address *address, const struct update *one, const struct update *two,
                 unsigned stride)
{
    uintptr_t values[] = {value_of(stepped, one), 0};

    first_update = one;
    second_update = two;
    answers[0] = route_to(stepped, address);
    apply(stepped, one);
    answers[1] = route_to(stepped, address);
    values[1] = value_of(stepped, two);
    apply(stepped, two);
    answers[2] = route_to(stepped, address);
    revert(stepped, two, values[1]);
    revert(stepped, one, values[0]);
    for (here = 0;; here += stride) {
        for (there = here;; there += stride + 2) {
            instruction = 0;
            prudence_read_lock();
            step_through(look_up_stepped, address, happen);
            prudence_read_unlock();
            if (instruction > there)
                revert(stepped, two, values[1]);
            if (instruction > here)
                revert(stepped, one, values[0]);
            if (found != answers[0] && found != answers[1] && found != answers[2])
                fail_msg("%zu, not %zu, %zu or %zu (updates at instructions %u and %u)", found,
                         answers[0], answers[1], answers[2], here, there);
            if (instruction <= there)
                break;
        }
        if (instruction <= here)
            break;
    }
}

/* The covering prefix is added, and then the longer one removed, so a route always exists. Nodes
 * between the two stay, so a lookup that remembered the values it passed would find none.
 * Similar pairs follow. */
TEST(a_lookup_has_one_right_answer)
{
    static const struct {
        struct update one, two;
        const char *address;
    } pairs[] = {
        {{ADD, "192.0.0.0/14", 1}, {REMOVE, "192.0.2.0/24", 0}, "192.0.2.7"},
        {{ADD, "0.0.0.0/0", 1}, {REMOVE, "192.0.2.0/24", 0}, "192.0.2.7"},
        {{ADD, "10.1.2.0/28", 2}, {REMOVE, "10.1.2.3/32", 0}, "10.1.2.3"},
        {{REPLACE, "10.1.2.0/24", 3}, {REMOVE, "10.1.2.3/32", 0}, "10.1.2.3"},
        {{ADD, "10.1.2.16/28", 4}, {REPLACE, "10.1.2.0/24", 5}, "10.1.2.17"},
        {{ADD, "10.1.3.0/24", 6}, {REPLACE, "10.1.0.0/16", 7}, "10.1.3.4"},
        {{REMOVE, "10.1.2.64/26", 0}, {REMOVE, "10.1.2.0/24", 0}, "10.1.2.65"},
        {{REMOVE, "10.1.2.3/32", 0}, {ADD, "10.1.2.3/32", 8}, "10.1.2.3"},
        {{ADD, "200.1.2.0/24", 9}, {ADD, "200.1.2.77/32", 10}, "200.1.2.77"},
        {{REMOVE, "0.0.0.0/1", 0}, {ADD, "0.0.0.0/0", 11}, "1.2.3.4"},
    };

    stepped = table_with(PRUDENCE_ROUTES_IPV4, 0, few4);
    for (unsigned i = 0; i < COUNT(pairs); i++) {
        struct address address = address_of(pairs[i].address);

        park(&address, &pairs[i].one, &pairs[i].two, 3 * deep_stride(3));
        is_together = true;
        park(&address, &pairs[i].one, &pairs[i].two, 7 * deep_stride(3));
        is_together = false;
    }
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* The same by words of areas, which may lead to nodes. */
TEST(so_it_has_in_areas)
{
    static const struct {
        struct update one, two;
        const char *address;
    } pairs[] = {
        {{ADD, "10.1.2.0/28", 2}, {REMOVE, "10.1.2.3/32", 0}, "10.1.2.3"},
        {{REMOVE, "10.1.2.3/32", 0}, {ADD, "10.1.2.3/32", 8}, "10.1.2.3"},
        {{REMOVE, "10.1.2.64/26", 0}, {REMOVE, "10.1.2.0/24", 0}, "10.1.2.65"},
        {{ADD, "200.1.2.0/24", 9}, {ADD, "200.1.2.77/32", 10}, "200.1.2.77"},
    };

    stepped = table_with(PRUDENCE_ROUTES_IPV4, 1 << 11, few4);
    make_areas();
    for (unsigned i = 0; i < COUNT(pairs); i++) {
        struct address address = address_of(pairs[i].address);

        park(&address, &pairs[i].one, &pairs[i].two, 3 * deep_stride(3));
        is_together = true;
        park(&address, &pairs[i].one, &pairs[i].two, 7 * deep_stride(3));
        is_together = false;
    }
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

TEST(so_it_has_of_ipv6)
{
    static const struct {
        struct update one, two;
        const char *address;
    } pairs[] = {
        {{ADD, "2001:db8:1:2::/100", 1}, {REMOVE, "2001:db8:1:2::3/128", 0}, "2001:db8:1:2::3"},
        {{REMOVE, "2001:db8:1:2::3/128", 0}, {ADD, "2001:db8:1:2::3/128", 2}, "2001:db8:1:2::3"},
        {{ADD, "2001:db8:1::/56", 3}, {REMOVE, "2001:db8:1:2::/64", 0}, "2001:db8:1:2::1"},
        {{ADD, "2001:db8:1::/56", 3}, {REMOVE, "2001:db8:1::/48", 0}, "2001:db8:1:4::1"},
        {{ADD, "2001:db8::/30", 4}, {REMOVE, "2001:db8::/32", 0}, "2001:db8::1"},
        {{REMOVE, "2001:db8::/32", 0}, {ADD, "2001:db8::/31", 5}, "2001:db8::1"},
        {{REMOVE, "2001:db8:1::/48", 0}, {REPLACE, "2001:db8::/32", 6}, "2001:db8:1::1"},
        /* The edge that the address leaves is cut during the lookup, by a prefix that matches
         * the address or not. */
        {{ADD, "2001:db8:1::/60", 7}, {REMOVE, "2001:db8:1::/60", 0}, "2001:db8:1:4000::1"},
        {{ADD, "2001:db8:1::/60", 8}, {REPLACE, "2001:db8:1::/48", 9}, "2001:db8:1:8::1"},
        {{ADD, "2001:db8:1::/51", 10}, {ADD, "2001:db8:1::/60", 11}, "2001:db8:1:8000::1"},
        {{REMOVE, "2001:db8:1::/48", 0}, {ADD, "2001:db8:1::/50", 12}, "2001:db8:1:8000::1"},
    };

    stepped = table_with(PRUDENCE_ROUTES_IPV6, 0, few6);
    for (unsigned i = 0; i < COUNT(pairs); i++) {
        struct address address = address_of(pairs[i].address);

        park(&address, &pairs[i].one, &pairs[i].two, 9 * deep_stride(3));
    }
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* --------------------------------------------------------------------- an update beside another */

static void update_in_between(const greg_t *registers)
{
    if (instruction++ < here || second_update == NULL || os_busy)
        return; /* another thread would wait while this one holds something */
    apply(stepped, second_update);
    second_update = NULL;
    step_enough = true;
}

/* The first update reserves its needs after the second, whatever room it had made before. */
static void updates_in_turn(const struct update *one, const struct update *two)
{
    const uintptr_t values[] = {value_of(stepped, one), value_of(stepped, two)};
    struct update first = *one;

    apply(stepped, one);
    apply(stepped, two);
    look_at_all(after);
    revert(stepped, two, values[1]);
    revert(stepped, one, values[0]);
    for (here = 0, second_update = NULL; !second_update; here += 61 * deep_stride(5)) {
        second_update = two;
        instruction = 0;
        step_through(apply_stepped, &first, update_in_between);
        if (second_update)
            apply(stepped, two);
        look_at_all(last);
        assert_memory_equal(last, after, places * sizeof last[0]);
        check_trie(stepped);
        revert(stepped, two, values[1]);
        revert(stepped, one, values[0]);
    }
}

TEST(updates_beside_each_other_make_room)
{
    static const char *const texts[] = {"2001:db8::/32", "2001:db8:1::/48", "2001:db8:1::/64",
                                        "2001:db8:1:8000::/64", NULL};
    static const char *const at[] = {"2001:db8:1::1", "2001:db8:1:8000::1", "2001:db8:1:4000::1",
                                     "2001:db8::1", NULL};
    static const struct update pairs[][2] = {
        /* needs no node then */
        {{REMOVE, "2001:db8:1::/48", 0}, {REMOVE, "2001:db8:1:8000::/64", 0}},
        {{REMOVE, "2001:db8:1:8000::/64", 0}, {REMOVE, "2001:db8:1::/48", 0}},
        {{REMOVE, "2001:db8:1::/48", 0}, {ADD, "2001:db8:1:4000::/50", 1}},
        {{ADD, "2001:db8::/40", 2}, {ADD, "2001:db8::/41", 3}},
    };

    stepped = table_with(PRUDENCE_ROUTES_IPV6, 0, texts);
    take_addresses(at);
    for (unsigned i = 0; i < COUNT(pairs); i++)
        updates_in_turn(&pairs[i][0], &pairs[i][1]);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* A reader that loaded the arrays before they were replaced, and before other updates, gets an
 * answer that has been right since. */
static void look_through_old_arrays(unsigned family, const struct update *update)
{
    struct prudence_routes old;
    uintptr_t now[PLACES], through[PLACES];

    stepped = table_with(family, 0, family ? few6 : few4);
    take_addresses(family ? at6 : at4);
    prudence_read_lock();
    old = *stepped;
    fill_up(256);
    assert_ptr_not_equal(old.index, stepped->index);
    assert_true(old.shortcuts != stepped->shortcuts || !family);
    look_at_all(now);
    apply(stepped, update);
    look_at_all(through);
    for (unsigned i = 0; i < places; i++) {
        uintptr_t value = family ? prudence_routes_lookup_ipv6(&old, addresses[i].bytes)
                                 : prudence_routes_lookup_ipv4(&old, addresses[i].bytes);

        assert_true(value == now[i] || value == through[i]);
    }
    prudence_read_unlock();
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

TEST(old_arrays_lead_on)
{
    for (unsigned i = 0; i < COUNT(updates4); i++)
        look_through_old_arrays(PRUDENCE_ROUTES_IPV4, &updates4[i]);
    for (unsigned i = 0; i < COUNT(updates6); i++)
        look_through_old_arrays(PRUDENCE_ROUTES_IPV6, &updates6[i]);
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"), pin_thread())
