/* SPDX-License-Identifier: MIT */
/*
 * Routes between any two instructions, beyond what is true of every table (test_steps.c): readers,
 * also slow ones, while a wider index and more slots of shortcuts take the place of others, or
 * after that, while prefixes change; and an update inside another, for which it has made room.
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

static const char *const few[][8] = {
    {"0.0.0.0/1", "10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "10.1.2.64/26", "10.1.2.3/32"},
    {"2000::/3", "2001:db8::/32", "2001:db8:1::/48", "2001:db8:1:2::/64", "2001:db8:1:2::3/128"},
};
static const char *const at[][12] = {
    {"1.2.3.4", "10.0.0.1", "10.1.1.1", "10.1.2.1", "10.1.2.3", "10.1.2.65", "200.1.2.77"},
    {"2002::", "2001:db8::1", "2001:db8:1::1", "2001:db8:1:2::1", "2001:db8:1:2::3", "fe80::1",
     "2001:db8:1:4::1", "2001:db8:1:8000::1", "2001:dc0::1", "2001:db8:c000::1"},
};
static const struct update updates[][8] = {
    {{ADD, "0.0.0.0/0", 1},
     {ADD, "10.1.0.0/19", 3},
     {ADD, "200.1.2.77/32", 5},
     {REMOVE, "0.0.0.0/1", 0},
     {REMOVE, "10.1.2.3/32", 0},
     {REPLACE, "10.0.0.0/8", 10}},
    {{ADD, "::/0", 1},
     {ADD, "2001:db8::/30", 9},       /* in the middle of an edge across the level of shortcuts */
     {ADD, "2001:db8:c000::/34", 10}, /* a node that has a shortcut is copied */
     {REMOVE, "2001:db8:1::/48", 0},  /* two edges become one */
     {REMOVE, "2001:db8::/32", 0},    /* two edges across that level become one */
     {REMOVE, "2001:db8:1:2::3/128", 0},
     {REPLACE, "2001:db8:1::/48", 5}},
};

#define PLACES 16u

static struct prudence_routes *stepped;
static struct address addresses[PLACES];
static uintptr_t before[PLACES], after[PLACES], last[PLACES];
static unsigned places, looks, late;
static uintptr_t slow_index; /* that slow readers have loaded; 0: the table's */

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

/* Plays a reader that missed its node in the slot some time ago, and continues from the index, or
 * from the word that it loaded there. */
static uintptr_t slow_route_to(const struct address *address)
{
    static const uint64_t nothing[64] __attribute__((aligned(64)));
    const struct prudence_routes slow = {.index = slow_index ? slow_index : stepped->index,
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
        late += slow[i] != now[i];
    }
    looks++;
}

static void apply_stepped(void *update)
{
    apply(stepped, update);
}

/* No address goes back to the answer before the update, also for a slow reader. */
static void step_updates(unsigned family)
{
    stepped = table_with(family, 0, few[family]);
    take_addresses(at[family]);
    for (const struct update *update = updates[family]; update->prefix; update++) {
        struct update now = *update;
        const uintptr_t value = value_of(stepped, &now);

        look_at_all(before);
        apply(stepped, &now);
        look_at_all(after);
        revert(stepped, &now, value);
        look_at_all(last);
        step_through(apply_stepped, &now, look);
        assert_memory_equal(last, after, places * sizeof last[0]);
        revert(stepped, &now, value);
    }
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

TEST(an_update_is_one_step_for_each_address)
{
    step_updates(PRUDENCE_ROUTES_IPV4);
    step_updates(PRUDENCE_ROUTES_IPV6);
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

    stepped = table_with(family, 0, few[family]);
    fill_up(255);
    shortcuts = stepped->shortcuts;
    take_addresses(at[family]);
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

    stepped = table_with(PRUDENCE_ROUTES_IPV4, 1 << 11, few[0]);
    for (; prefix.address[2] < 224 + ROUTE_AREA_WORDS - 2; prefix.address[2]++)
        assert_int_equal(prudence_routes_add(stepped, &prefix, 1, NULL), 0);
    take_addresses(at[0]);
    look_at_all(before);
    memcpy(after, before, sizeof after);
    memcpy(last, before, sizeof last);
    assert_int_equal(route_table_of(stepped)->areas, 0);
    step_through(apply_stepped, &update, look);
    assert_int_equal(route_table_of(stepped)->areas, 1);
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* ----------------------------------------------------------- lookups from before a publication */

/* The nodes are also above the words of an index of 13 bits, and of an area. Prefixes in the first
 * lines leave few words to the others. */
static const char *const inner[][18] = {
    {"128.0.0.0/1", "64.0.0.0/2", "32.0.0.0/3", "16.0.0.0/4", "0.0.0.0/5", "10.2.0.0/15",
     "10.4.0.0/14", "10.1.0.0/17", "10.1.128.0/18", "10.0.128.0/18", "10.0.64.0/18",
     /* and */
     "10.0.0.0/8", "10.0.0.0/16", "10.0.240.0/24", "10.0.1.0/24", "10.0.1.136/29"},
    {"8000::/1", "4000::/2", "::/3", "3000::/4", "2800::/5", "2400::/6",
     /* and */
     "2000::/12", "2000::/16", "2000:1::/32"},
};
static const char *const inner_at[][12] = {
    {"10.0.40.1", "10.0.2.1", "10.0.240.1", "10.0.250.1", "10.0.1.1", "10.0.1.137", "10.0.1.130",
     "10.1.200.1", "10.9.0.1", "11.0.0.1", "200.0.0.1"},
    {"2000::1", "2000:1::1", "2001::1", "2008::1", "2010::1", "2200::1", "fe80::1"},
};
static const struct update inner_updates[][18] = {
    {{REPLACE, "10.0.0.0/16", 1},
     {REMOVE, "10.0.0.0/16", 0},
     {ADD, "10.0.0.0/17", 1},
     {REPLACE, "10.0.0.0/8", 1},
     {REMOVE, "10.0.0.0/8", 0},
     {ADD, "10.0.0.0/12", 1},
     {ADD, "10.0.40.0/24", 1}, /* a node above the words of the area comes, and goes */
     {REMOVE, "10.0.40.0/24", 0},
     {ADD, "10.0.40.0/27", 1}, /* the same, with one to which the words lead */
     {REMOVE, "10.0.40.0/27", 0},
     {REMOVE, "10.0.1.136/29", 0},
     {ADD, "10.0.1.128/25", 1},
     {REPLACE, "10.0.1.0/24", 1},
     {REMOVE, "10.0.1.0/24", 0},
     {ADD, "0.0.0.0/0", 1},
     {REPLACE, "0.0.0.0/0", 1},
     {REMOVE, "0.0.0.0/0", 0}},
    {{REPLACE, "2000::/12", 1},
     {REMOVE, "2000::/12", 0},
     {ADD, "2000::/11", 1},
     {ADD, "2000::/17", 1},
     {ADD, "2008::/16", 1},
     {REMOVE, "2008::/16", 0},
     {ADD, "::/0", 1},
     {REMOVE, "::/0", 0}},
};

static void widen(void)
{
    fill_up(256);
    assert_int_equal(routes_stats_of(stepped).index_bits, 13);
}

static void publish_area(void)
{
    struct prudence_routes_prefix prefix = {.address = {10, 0, 224}, .length = 24};

    for (; route_table_of(stepped)->areas == 0; prefix.address[2]++)
        assert_int_equal(prudence_routes_add(stepped, &prefix, 1, NULL), 0);
}

static void widen_and_publish_area(void)
{
    widen();
    publish_area();
}

/* Returns the table's index as it is now. */
static uintptr_t copy_of_index(void)
{
    static uint64_t words[1 << 13] __attribute__((aligned(64)));

    memcpy(words, route_words(stepped->index), route_words_bytes(stepped->index));
    return (uintptr_t)words | route_words_bits(stepped->index);
}

/* Begins a section in which lookups load their words of the index, before others are published. */
static void begin_slowly(unsigned family, uint64_t prefixes, const struct update *update,
                         void (*publish)(void))
{
    stepped = table_with(family, prefixes, inner[family]);
    if (update->kind != ADD && !value_of(stepped, update))
        apply(stepped, &(struct update){ADD, update->prefix, 99});
    prudence_read_lock();
    slow_index = copy_of_index();
    publish();
}

static void end_slowly(void)
{
    slow_index = 0;
    prudence_read_unlock();
    check_trie(stepped);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* The lookups have the answer after an update at no time when those that begin then have not. */
static void step_after(unsigned family, uint64_t prefixes, void (*publish)(void))
{
    take_addresses(inner_at[family]);
    late = 0;
    for (const struct update *update = inner_updates[family]; update->prefix; update++) {
        struct update now = *update;

        begin_slowly(family, prefixes, &now, publish);
        apply(stepped, &now);
        look_at_all(after);
        end_slowly();
        begin_slowly(family, prefixes, &now, publish);
        look_at_all(before);
        memcpy(last, before, sizeof last);
        step_through(apply_stepped, &now, look);
        assert_memory_equal(last, after, places * sizeof last[0]);
        end_slowly();
    }
    assert_true(late > 0);
}

TEST(a_lookup_from_before_a_publication_is_late_but_never_early)
{
    step_after(PRUDENCE_ROUTES_IPV4, 0, widen);
    step_after(PRUDENCE_ROUTES_IPV6, 0, widen);
    step_after(PRUDENCE_ROUTES_IPV4, 1 << 11, publish_area);
    step_after(PRUDENCE_ROUTES_IPV4, 0, widen_and_publish_area);
}

/* --------------------------------------------------------------------- an update during another */

static const struct update *second_update;
static unsigned here, instruction;

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

TEST(updates_at_the_same_time_make_room)
{
    static const char *const texts[] = {"2001:db8::/32", "2001:db8:1::/48", "2001:db8:1::/64",
                                        "2001:db8:1:8000::/64", NULL};
    static const char *const near[] = {"2001:db8:1::1", "2001:db8:1:8000::1", "2001:db8:1:4000::1",
                                       "2001:db8::1", NULL};
    static const struct update pairs[][2] = {
        /* needs no node then */
        {{REMOVE, "2001:db8:1::/48", 0}, {REMOVE, "2001:db8:1:8000::/64", 0}},
        {{REMOVE, "2001:db8:1:8000::/64", 0}, {REMOVE, "2001:db8:1::/48", 0}},
        {{REMOVE, "2001:db8:1::/48", 0}, {ADD, "2001:db8:1:4000::/50", 1}},
        {{ADD, "2001:db8::/40", 2}, {ADD, "2001:db8::/41", 3}},
    };

    stepped = table_with(PRUDENCE_ROUTES_IPV6, 0, texts);
    take_addresses(near);
    for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        updates_in_turn(&pairs[i][0], &pairs[i][1]);
    assert_int_equal(prudence_routes_destroy(stepped), 0);
}

/* A reader that loaded the arrays before they were replaced, and before other updates, gets an
 * answer that has been right since. */
static void look_through_old_arrays(unsigned family, const struct update *update)
{
    struct prudence_routes old;
    uintptr_t now[PLACES], through[PLACES];

    stepped = table_with(family, 0, few[family]);
    take_addresses(at[family]);
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
    for (unsigned family = 0; family < 2; family++)
        for (const struct update *update = updates[family]; update->prefix; update++)
            look_through_old_arrays(family, update);
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"), pin_thread())
