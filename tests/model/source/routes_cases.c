/* SPDX-License-Identifier: MIT */
/*
 * Cases of routes: up to three updates with a thread that looks up one address twice, asks for a
 * prefix, or walks. Each answer is right for a moment during the lookup, and none is older than an
 * earlier one. A value is an object that is written before it is added.
 */
#include "caches.h"
#include "explorer.h"
#include "tables/route_index.h"
#include "tables/route_shortcut.h"
#include "tables/route_words.h"
#include "tables/routes.h"

/* ------------------------------------------------------------------------- prefixes and updates */

#define IP4(a, b, c, d)                                                                            \
    ((uint64_t)(a) << 56 | (uint64_t)(b) << 48 | (uint64_t)(c) << 40 | (uint64_t)(d) << 32)

/* Builds the first 64 bits. */
#define IP6(a, b, c, d)                                                                            \
    ((uint64_t)(a) << 48 | (uint64_t)(b) << 32 | (uint64_t)(c) << 16 | (uint64_t)(d))

enum kind { NOTHING, ADD, REPLACE, REMOVE };

struct update {
    enum kind kind;
    uint64_t address;
    unsigned length;
};

#define ITEMS   16
#define MADE    42
#define PRESENT 0u /* the moment before the first update */
#define UPDATES 3u

/* A prefix has one of these as its value, or none if it is not in the table. */
static struct item {
    unsigned value; /* plain: a thread that finds an item sees earlier writes to it */
} items[ITEMS];
static unsigned items_made;

/* All prefixes that are ever in the table: for each moment the number of the item, or 0. */
static struct known {
    uint64_t address;
    unsigned length, item[UPDATES + 1];
} known[ITEMS];
static unsigned known_count;

static struct route_table *table;
static struct update updates[UPDATES];
static unsigned update_count;
static uint64_t updates_made; /* number of updates that have returned */
static uint64_t address;

static bool matches(const struct known *prefix, uint64_t what)
{
    if (prefix->length >= 64) /* bits after the 64th are 0 everywhere */
        return prefix->address == what;
    return prefix->length == 0 || (prefix->address ^ what) >> (64 - prefix->length) == 0;
}

/* Returns the item of the longest prefix, or 0. */
static unsigned right_answer(unsigned moment)
{
    const struct known *best = NULL;

    for (const struct known *i = known; i < known + known_count; i++)
        if (i->item[moment] && matches(i, address) && (!best || i->length > best->length))
            best = i;
    return best ? best->item[moment] : 0;
}

static unsigned items_in_table(unsigned moment)
{
    unsigned count = 0;

    for (unsigned i = 0; i < known_count; i++)
        count += known[i].item[moment] != 0;
    return count;
}

static struct known *known_prefix(uint64_t of, unsigned length)
{
    for (struct known *i = known; i < known + known_count; i++)
        if (i->address == of && i->length == length)
            return i;
    known[known_count] = (struct known){of, length, {0}};
    return &known[known_count++];
}

static struct prudence_routes_prefix prefix_of(uint64_t of, unsigned length)
{
    struct prudence_routes_prefix prefix = {.length = length};

    for (unsigned i = 0; i < 8; i++)
        prefix.address[i] = (unsigned char)(of >> (56 - 8 * i));
    return prefix;
}

static unsigned item_of(uintptr_t value)
{
    const struct item *item = (const struct item *)value;

    explore_assert(!item || item->value == MADE);
    return item ? (unsigned)(item - items) : 0;
}

/* Applies the update from the next moment on. */
static void apply(const struct update *update, unsigned number)
{
    const struct prudence_routes_prefix prefix = prefix_of(update->address, update->length);
    uintptr_t value = (uintptr_t)&items[number];

    items[number].value = MADE;
    if (update->kind == ADD)
        explore_assert(prudence_routes_add(&table->public, &prefix, value, NULL) == 0);
    else if (update->kind == REPLACE)
        explore_assert(prudence_routes_replace(&table->public, &prefix, value, NULL) == 0);
    else
        explore_assert(prudence_routes_erase(&table->public, &prefix, NULL) == 0);
}

/* -------------------------------------------------------------------------- tables, and threads */

static void make_table(enum prudence_routes_family family)
{
    table = explore_alloc_aligned(sizeof *table + 2 * ROUTE_FIRST_WORDS * sizeof table->first[0],
                                  CACHE_LINES_APART);
    route_table_shape(table, family);
    for (unsigned i = 0; i < ROUTE_NODE_SIZES && table->sizes[i]; i++)
        table->caches[i] = explored_cache(table->sizes[i]);
    table->indexes = explored_cache(0);
    os_lock_init(&table->lock, OS_RANK_STRUCTURES);
    table->root = route_node_make(table, 1);
    route_node_first(table->root, 0);
    table->public.index = route_index_make(table, 0);
    if (family == PRUDENCE_ROUTES_IPV6)
        table->public.shortcuts = route_shortcuts_make(table, 0);
    items_made = known_count = update_count = 0;
}

/* Makes a table of these prefixes, with updates to come; NOTHING ends both lists. */
static void make(enum prudence_routes_family family, const struct update *prefixes,
                 const struct update *then, uint64_t of)
{
    make_table(family);
    address = of;
    for (; prefixes->kind; prefixes++) {
        apply(prefixes, ++items_made);
        for (unsigned moment = 0; moment <= UPDATES; moment++)
            known_prefix(prefixes->address, prefixes->length)->item[moment] = items_made;
    }
    for (; then->kind; then++) {
        updates[update_count++] = *then;
        for (unsigned moment = update_count; moment <= UPDATES; moment++)
            known_prefix(then->address, then->length)->item[moment] =
                then->kind == REMOVE ? 0 : items_made + update_count;
    }
}

static void update_all(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < update_count; i++) {
        apply(&updates[i], items_made + i + 1);
        store_release(&updates_made, i + 1);
    }
}

static unsigned look_up(void)
{
    const uint64_t bytes[2] = {__builtin_bswap64(address), 0};

    return item_of(table->node_front ? prudence_routes_lookup_ipv6(&table->public, bytes)
                                     : prudence_routes_lookup_ipv4(&table->public, bytes));
}

/* Returns the first moment, from this one on, for which the answer is right. */
static unsigned moment_of(unsigned answer, unsigned moment)
{
    const unsigned from = moment;

    for (; moment <= update_count; moment++)
        if (right_answer(moment) == answer)
            return moment;
    explore_fail("item %u is found, which is the answer at no moment from %u on", answer, from);
}

static void looks_up(void *unused)
{
    unsigned moment = PRESENT;

    (void)unused;
    enter();
    for (unsigned i = 0; i < 2; i++) {
        const unsigned returned = (unsigned)load_acquire(&updates_made);

        moment = moment_of(look_up(), moment > returned ? moment : returned);
    }
    leave();
    if (moment > PRESENT)
        explore_note();
}

/* Looks the address up twice in one call. Each answer has a moment of its own. */
static void looks_up_together(void *unused)
{
    const uint32_t bytes[2] = {__builtin_bswap32((uint32_t)(address >> 32)),
                               __builtin_bswap32((uint32_t)(address >> 32))};
    unsigned moment = PRESENT;
    uintptr_t values[2];

    (void)unused;
    enter();
    for (unsigned i = 0; i < 2; i++) {
        const unsigned returned = (unsigned)load_acquire(&updates_made);
        const unsigned from = moment > returned ? moment : returned;
        unsigned one, other;

        prudence_routes_lookup_many_ipv4(&table->public, bytes, 2, values);
        one = moment_of(item_of(values[0]), from);
        other = moment_of(item_of(values[1]), from);
        moment = one > other ? one : other;
    }
    leave();
    if (moment > PRESENT)
        explore_note();
}

/* Gets each prefix, and checks that the answer is right for a moment. */
static void gets(void *unused)
{
    enter();
    for (unsigned i = 0; i < known_count; i++) {
        const struct prudence_routes_prefix prefix = prefix_of(known[i].address, known[i].length);
        unsigned moment = (unsigned)load_acquire(&updates_made);
        const unsigned item = item_of(prudence_routes_get(&table->public, &prefix));

        while (moment <= update_count && known[i].item[moment] != item)
            moment++;
        explore_assert(moment <= update_count);
    }
    leave();
    (void)unused;
    explore_note();
}

/* Checks that the prefixes that stay are found once, and the others at most once. */
static unsigned walk_all(void)
{
    struct prudence_routes_walk walk;
    unsigned seen = 0, count = 0;
    uintptr_t value;

    prudence_routes_for_each(&walk, &table->public, NULL, value)
    {
        unsigned i = 0;

        for (; i < known_count; i++) {
            const struct prudence_routes_prefix prefix =
                prefix_of(known[i].address, known[i].length);

            if (prefix.length == walk.prefix.length &&
                !__builtin_memcmp(prefix.address, walk.prefix.address, sizeof prefix.address))
                break;
        }
        explore_assert(i < known_count && !(seen & 1u << i) && item_of(value));
        seen |= 1u << i;
        count++;
    }
    for (unsigned i = 0; i < known_count; i++)
        explore_assert(seen & 1u << i || !known[i].item[0] || !known[i].item[update_count]);
    return count;
}

static void walks(void *unused)
{
    (void)unused;
    enter();
    walk_all();
    leave();
    explore_note();
}

static void with_updates(void (*reader)(void *))
{
    explore_thread(update_all, NULL);
    explore_thread(reader, NULL);
}

static void all_is_done(void)
{
    const unsigned count = items_in_table(update_count);

    explore_assert(look_up() == right_answer(update_count));
    explore_assert(prudence_routes_count(&table->public) == count && walk_all() == count);
}

/* clang-format off */
#define DURING(reader, title, name, family, prefixes, of, ...)                                     \
    CASE_THEN(title, name, all_is_done, 2, 3)                                                      \
    {                                                                                              \
        static const struct update then[] = {__VA_ARGS__, {NOTHING, 0, 0}};                        \
                                                                                                   \
        make(PRUDENCE_ROUTES_##family, prefixes, then, of);                                        \
        with_updates(reader);                                                                      \
    }
#define DURING_LOOKUPS(...) DURING(looks_up, __VA_ARGS__)

/* ----------------------------------------------------------------------------------------- IPv4 */

static const struct update long4[] = {{ADD, IP4(10, 1, 2, 0), 24}, {NOTHING, 0, 0}};
static const struct update short4[] = {{ADD, IP4(10, 0, 0, 0), 8}, {NOTHING, 0, 0}};
static const struct update both4[] = {{ADD, IP4(10, 0, 0, 0), 8}, {ADD, IP4(10, 1, 2, 0), 24}, {NOTHING, 0, 0}};
static const struct update above_index4[] = {{ADD, IP4(8, 0, 0, 0), 5}, {ADD, IP4(10, 1, 2, 0), 24}, {NOTHING, 0, 0}};

/* A prefix that covers the address comes, changes, and goes, both as the answer and below a
 * longer one. */
DURING_LOOKUPS("routes-cover-added", cover_added, IPV4, long4, IP4(10, 1, 2, 3) ^ IP4(0, 0, 1, 0), {ADD, IP4(10, 0, 0, 0), 8})
DURING_LOOKUPS("routes-cover-replaced", cover_replaced, IPV4, both4, IP4(10, 1, 3, 3), {REPLACE, IP4(10, 0, 0, 0), 8}, {REPLACE, IP4(10, 0, 0, 0), 8})
DURING_LOOKUPS("routes-cover-removed", cover_removed, IPV4, both4, IP4(10, 1, 3, 3), {REMOVE, IP4(10, 0, 0, 0), 8}, {ADD, IP4(10, 0, 0, 0), 9})
DURING_LOOKUPS("routes-cover-under-longer", cover_under_longer, IPV4, both4, IP4(10, 1, 2, 3), {REMOVE, IP4(10, 0, 0, 0), 8}, {REPLACE, IP4(10, 1, 2, 0), 24})

/* The same in words of the index. */
DURING_LOOKUPS("routes-words-handed-down", words_handed_down, IPV4, long4, IP4(9, 1, 2, 3), {ADD, IP4(8, 0, 0, 0), 5}, {REPLACE, IP4(8, 0, 0, 0), 5})
DURING_LOOKUPS("routes-words-taken-back", words_taken_back, IPV4, above_index4, IP4(10, 9, 2, 3), {REMOVE, IP4(8, 0, 0, 0), 5}, {ADD, IP4(8, 0, 0, 0), 6})

/* A longer prefix comes with its nodes, and goes with them. */
DURING_LOOKUPS("routes-longer-added", longer_added, IPV4, short4, IP4(10, 1, 2, 3), {ADD, IP4(10, 1, 2, 0), 24}, {REPLACE, IP4(10, 1, 2, 0), 24})
DURING_LOOKUPS("routes-longer-removed", longer_removed, IPV4, both4, IP4(10, 1, 2, 3), {REMOVE, IP4(10, 1, 2, 0), 24}, {REPLACE, IP4(10, 0, 0, 0), 8})
DURING_LOOKUPS("routes-nodes-removed", nodes_removed, IPV4, above_index4, IP4(10, 1, 2, 3), {REMOVE, IP4(10, 1, 2, 0), 24}, {REPLACE, IP4(8, 0, 0, 0), 5})

/* A route always exists, although no prefix stays. */
DURING_LOOKUPS("routes-cover-for-longer", cover_for_longer, IPV4, long4, IP4(10, 1, 2, 3), {ADD, IP4(10, 0, 0, 0), 8}, {REMOVE, IP4(10, 1, 2, 0), 24})

/* A prefix next to the address: another node takes the place, with the same answer. */
DURING_LOOKUPS("routes-neighbour", a_neighbour, IPV4, both4, IP4(10, 1, 2, 3), {ADD, IP4(10, 1, 1, 0), 24}, {REPLACE, IP4(10, 1, 2, 0), 24})

DURING(gets, "routes-get-during-removal", get_during_removal, IPV4, both4, 0, {REMOVE, IP4(10, 0, 0, 0), 8}, {REMOVE, IP4(10, 1, 2, 0), 24})
DURING(gets, "routes-get-during-default", get_during_default, IPV4, long4, 0, {ADD, 0, 0})
DURING(walks, "routes-walk-during-removal", walk_during_removal, IPV4, both4, 0, {REMOVE, IP4(10, 0, 0, 0), 8}, {ADD, IP4(10, 1, 3, 0), 24})

/* Addresses of one call: one whose answer is in the first node, one that goes on to a node that is
 * replaced, and one that gets nodes. */
DURING(looks_up_together, "routes-together-longer-added", together_longer_added, IPV4, short4, IP4(10, 1, 2, 3), {ADD, IP4(10, 1, 2, 0), 24}, {REPLACE, IP4(10, 1, 2, 0), 24})
DURING(looks_up_together, "routes-together-cover-replaced", together_cover_replaced, IPV4, both4, IP4(10, 200, 3, 3), {REPLACE, IP4(10, 0, 0, 0), 8}, {REPLACE, IP4(10, 0, 0, 0), 8})
DURING(looks_up_together, "routes-together-neighbour", together_a_neighbour, IPV4, both4, IP4(10, 1, 2, 3), {ADD, IP4(10, 1, 0, 0), 16}, {REPLACE, IP4(10, 1, 2, 0), 24})

/* ----------------------------------------------------------------------------------------- IPv6 */

/* An edge below the level of shortcuts, to level 11; and one across that level. */
static const struct update edge6[] = {{ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {ADD, IP6(0x2001, 0xdb8, 1, 2), 64}, {NOTHING, 0, 0}};
static const struct update across6[] = {{ADD, IP6(0x2000, 0, 0, 0), 3}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {NOTHING, 0, 0}};
static const struct update cut6[] = {{ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 56}, {ADD, IP6(0x2001, 0xdb8, 1, 2), 64}, {NOTHING, 0, 0}};
static const struct update cut_across6[] = {{ADD, IP6(0x2000, 0, 0, 0), 3}, {ADD, IP6(0x2001, 0xdb8, 0, 0), 32}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {NOTHING, 0, 0}};
static const struct update short6[] = {{ADD, IP6(0x2000, 0, 0, 0), 3}, {NOTHING, 0, 0}};

/* Below level 11. */
static const struct update long6[] = {{ADD, IP6(0x2001, 0xdb8, 1, 2), 64}, {ADD, IP6(0x2001, 0xdb8, 1, 2), 70}, {NOTHING, 0, 0}};
DURING_LOOKUPS("routes-long-changes", long_changes, IPV6, long6, IP6(0x2001, 0xdb8, 1, 2), {ADD, IP6(0x2001, 0xdb8, 1, 2), 71}, {REPLACE, IP6(0x2001, 0xdb8, 1, 2), 71})

/* The address leaves the edge, which is cut by a prefix that does not match it, by one that
 * does, or by one next to it. */
DURING_LOOKUPS("routes-cut-by-other", cut_by_other, IPV6, edge6, IP6(0x2001, 0xdb8, 1, 0x4000), {ADD, IP6(0x2001, 0xdb8, 1, 0), 60}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-cut-by-own", cut_by_own, IPV6, edge6, IP6(0x2001, 0xdb8, 1, 8), {ADD, IP6(0x2001, 0xdb8, 1, 0), 60}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-cut-twice", cut_twice, IPV6, edge6, IP6(0x2001, 0xdb8, 1, 0x4000), {ADD, IP6(0x2001, 0xdb8, 1, 0), 51}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 60})
DURING_LOOKUPS("routes-cut-by-branch", cut_by_branch, IPV6, edge6, IP6(0x2001, 0xdb8, 1, 0x8001), {ADD, IP6(0x2001, 0xdb8, 1, 0x8000), 56}, {REMOVE, IP6(0x2001, 0xdb8, 1, 0x8000), 56})
DURING_LOOKUPS("routes-cut-above-the-end", cut_above_the_end, IPV6, edge6, IP6(0x2001, 0xdb8, 1, 2), {ADD, IP6(0x2001, 0xdb8, 1, 0), 60}, {REMOVE, IP6(0x2001, 0xdb8, 1, 2), 64})

/* Two edges become one. */
DURING_LOOKUPS("routes-joined-next-to-other", joined_next_to_other, IPV6, cut6, IP6(0x2001, 0xdb8, 1, 0x4000), {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 56}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 60})
DURING_LOOKUPS("routes-joined-under-own", joined_under_own, IPV6, cut6, IP6(0x2001, 0xdb8, 1, 8), {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 56}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-joined-and-cut", joined_and_cut, IPV6, cut6, IP6(0x2001, 0xdb8, 1, 8), {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 56}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 58})

/* A node without a shortcut. */
DURING_LOOKUPS("routes-no-shortcut", no_shortcut, IPV6, short6, IP6(0x2001, 0xdb8, 1, 4), {ADD, IP6(0x2000, 0, 0, 0), 8}, {ADD, IP6(0x2000, 0, 0, 0), 9})

/* A node that has a shortcut comes, goes, is replaced; an edge across that level is cut, and two
 * become one. */
DURING_LOOKUPS("routes-shortcut-appears", shortcut_appears, IPV6, short6, IP6(0x2001, 0xdb8, 1, 4), {ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-shortcut-appears-and-changes", shortcut_appears_and_changes, IPV6, short6, IP6(0x2001, 0xdb8, 1, 4), {ADD, IP6(0x2001, 0xdb8, 0, 0), 47}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-shortcut-appears-and-vanishes", shortcut_appears_and_vanishes, IPV6, short6, IP6(0x2001, 0xdb8, 1, 4), {ADD, IP6(0x2001, 0xdb8, 1, 0), 48}, {REPLACE, IP6(0x2000, 0, 0, 0), 3}, {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-shortcut-vanishes", shortcut_vanishes, IPV6, across6, IP6(0x2001, 0xdb8, 1, 4), {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 48}, {REPLACE, IP6(0x2000, 0, 0, 0), 3})
DURING_LOOKUPS("routes-shortcut-changes", shortcut_changes, IPV6, cut_across6, IP6(0x2001, 0xdb8, 0xc000, 4), {ADD, IP6(0x2001, 0xdb8, 0xc000, 0), 34}, {REPLACE, IP6(0x2001, 0xdb8, 0xc000, 0), 34})
DURING_LOOKUPS("routes-shortcut-cut", shortcut_cut, IPV6, across6, IP6(0x2001, 0xdb8, 2, 4), {ADD, IP6(0x2001, 0xdb8, 0, 0), 32}, {REPLACE, IP6(0x2001, 0xdb8, 0, 0), 32})
DURING_LOOKUPS("routes-shortcut-cut-above", shortcut_cut_above, IPV6, across6, IP6(0x2001, 0xdb8, 1, 4), {ADD, IP6(0x2001, 0xdb8, 0, 0), 30}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING_LOOKUPS("routes-shortcut-joined", shortcut_joined, IPV6, cut_across6, IP6(0x2001, 0xdb8, 2, 4), {REMOVE, IP6(0x2001, 0xdb8, 0, 0), 32}, {REPLACE, IP6(0x2000, 0, 0, 0), 3})
DURING_LOOKUPS("routes-shortcut-joined-below", shortcut_joined_below, IPV6, cut_across6, IP6(0x2001, 0xdb8, 1, 4), {REMOVE, IP6(0x2001, 0xdb8, 0, 0), 32}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})

DURING(gets, "routes-get-during-cut", get_during_cut, IPV6, edge6, 0, {ADD, IP6(0x2001, 0xdb8, 1, 0), 60}, {REMOVE, IP6(0x2001, 0xdb8, 1, 2), 64})
DURING(gets, "routes-get-during-join", get_during_join, IPV6, cut_across6, 0, {REMOVE, IP6(0x2001, 0xdb8, 0, 0), 32}, {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48})
DURING(walks, "routes-walk-during-cut", walk_during_cut, IPV6, edge6, 0, {ADD, IP6(0x2001, 0xdb8, 1, 0), 60}, {ADD, IP6(0x2001, 0xdb8, 1, 0), 51})
DURING(walks, "routes-walk-during-join", walk_during_join, IPV6, cut6, 0, {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 56}, {REMOVE, IP6(0x2001, 0xdb8, 1, 0), 48})

/* clang-format on */

/* -------------------------------------------------------------------- arrays that are made anew */

#define FULL 256u /* with this many prefixes the index gets wider */

/* Pretends one prefix less than FULL, and more nodes that have shortcuts than there is room for. */
static void make_full(enum prudence_routes_family family, const struct update *prefixes,
                      const struct update *then, uint64_t of, uint64_t edges)
{
    make(family, prefixes, then, of);
    table->prefixes = FULL - 1;
    table->edges_across += edges;
    with_updates(looks_up);
}

CASE_THEN("routes-wider-index", wider_index, arrays_are_new, 2, 3)
{
    static const struct update then[] = {
        {ADD, IP4(10, 1, 3, 0), 24}, {REPLACE, IP4(10, 1, 2, 0), 24}, {NOTHING, 0, 0}};

    make_full(PRUDENCE_ROUTES_IPV4, both4, then, then[1].address, 0);
}

/* A lookup that found a node in the first index is slow, and ends while a prefix in that node
 * changes. Lookups that begin then find a word of the wider index. */
CASE_THEN("routes-slow-lookup", slow_lookup, arrays_are_new, 2, 3)
{
    static const struct update then[] = {
        {ADD, IP4(10, 1, 3, 0), 24}, {REPLACE, IP4(10, 0, 0, 0), 8}, {NOTHING, 0, 0}};

    make_full(PRUDENCE_ROUTES_IPV4, both4, then, IP4(10, 9, 0, 0), 0);
}

static const struct update then_across6[] = {{ADD, IP6(0x2001, 0xdb8, 0xc000, 0), 34},
                                             {REPLACE, IP6(0x2001, 0xdb8, 1, 0), 48},
                                             {NOTHING, 0, 0}};

CASE_THEN("routes-more-slots", more_slots, arrays_are_new, 1, 3)
{
    make_full(PRUDENCE_ROUTES_IPV6, across6, then_across6, then_across6[1].address, FULL / 2);
}

/* The slots stay, and no slot belongs to the address. */
CASE_THEN("routes-wider-index-of-ipv6", wider_index6, arrays_are_new, 1, 3)
{
    static const struct update then[] = {
        {ADD, IP6(0x2001, 0xd00, 0, 0), 24}, {ADD, IP6(0x2001, 0, 0, 0), 16}, {NOTHING, 0, 0}};

    make_full(PRUDENCE_ROUTES_IPV6, short6, then, then[1].address, 0);
}

static void arrays_are_new(void)
{
    explore_assert(route_words_bits(table->public.index) == 13);
    explore_assert(table->edges_across < FULL / 2 ||
                   route_words_bits(table->public.shortcuts) == 10);
    table->prefixes -= FULL - 1 - items_made;
    all_is_done();
}

/* ---------------------------------------------------------------------------------- two writers */

static void updates_one(void *number)
{
    const unsigned i = (unsigned)(uintptr_t)number;

    enter();
    apply(&updates[i], items_made + i + 1);
    leave();
}

/* Each update needs another node than it has found if the other one comes first. */
CASE_THEN("routes-two-writers", two_writers, all_is_done, 2, 3)
{
    static const struct update then[] = {{ADD, IP6(0x2001, 0xdb8, 1, 0), 60},
                                         {REMOVE, IP6(0x2001, 0xdb8, 1, 2), 64},
                                         {NOTHING, 0, 0}};

    make(PRUDENCE_ROUTES_IPV6, edge6, then, IP6(0x2001, 0xdb8, 1, 2));
    explore_thread(updates_one, (void *)0);
    explore_thread(updates_one, (void *)1);
}

/* Both need a node of one size. The first leaves a spare node, which the other may take. */
CASE_THEN("routes-two-writers-of-one-size", two_writers_one_size, all_is_done, 2, 3)
{
    static const struct update then[] = {
        {ADD, IP4(10, 1, 1, 0), 24}, {ADD, IP4(10, 1, 3, 0), 24}, {NOTHING, 0, 0}};

    make(PRUDENCE_ROUTES_IPV4, both4, then, IP4(10, 1, 3, 0));
    explore_thread(updates_one, (void *)0);
    explore_thread(updates_one, (void *)1);
}
