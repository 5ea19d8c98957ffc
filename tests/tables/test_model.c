/* SPDX-License-Identifier: MIT */
/*
 * Random operations on every kind of table (kinds.h) and on a model, an array of the entries in the
 * order of their addition: after each one the table answers as the model does. Tables of hashes run
 * with good hashes and with the worst, and also while they are resized at random; tables of routes
 * also with wide indexes.
 *
 * ctest: not-with thread (one thread, and much to do: nothing to find)
 */
#include "tables/kinds.h"

#include "support/hash_test.h"
#include "support/random.h"
#include "support/routes_test.h"
#include "support/test_seed.h"
#include "tables/keys.h"

#define ENTRIES    3000
#define OPERATIONS 40000

static struct entry entries[ENTRIES];
static struct entry *order[ENTRIES]; /* entries in the table, the oldest first */
static unsigned held;
static void *table;
static uint64_t random_state;

static unsigned below(unsigned bound)
{
    return random_below(&random_state, bound);
}

/* ---------------------------------------------------------------------------------------- model */

static struct entry *unused_entry(unsigned key)
{
    unsigned i = below(ENTRIES);

    while (entries[i].in)
        i = (i + 1) % ENTRIES;
    entries[i].key = key;
    return &entries[i];
}

static unsigned newest(unsigned key, unsigned before)
{
    while (before > 0 && order[before - 1]->key != key)
        before--;
    return before; /* index + 1; 0: none */
}

static struct entry *expected(unsigned key)
{
    unsigned at = newest(key, held);

    return at ? order[at - 1] : NULL;
}

/* Puts the fresh entry in the place of the one that is there, or behind all others. */
static void model_put(struct entry *there, struct entry *fresh)
{
    unsigned at = 0;

    while (at < held && order[at] != there)
        at++;
    if (there)
        there->in = false;
    fresh->in = true;
    order[at] = fresh;
    held += !there;
}

static void model_remove(struct entry *entry)
{
    unsigned at = 0;

    while (order[at] != entry)
        at++;
    entry->in = false;
    memmove(&order[at], &order[at + 1], (--held - at) * sizeof order[0]);
}

/* Returns the entry with the nearest key from this one on, upwards or downwards. */
static struct entry *nearest(unsigned key, int step)
{
    struct entry *best = NULL;

    for (unsigned i = 0; i < held; i++)
        if ((step > 0 ? order[i]->key >= key && (!best || order[i]->key < best->key)
                      : order[i]->key <= key && (!best || order[i]->key > best->key)) &&
            key < *tested->keys)
            best = order[i];
    return best;
}

/* ----------------------------------------------------------------------------------- operations */

static void add(unsigned key)
{
    struct entry *entry = unused_entry(key), *there = expected(key), *found = entry;

    assert_int_equal(tested->add(table, key, entry, &found), there ? EEXIST : 0);
    assert_ptr_equal(found, there);
    if (!there)
        model_put(NULL, entry);
}

static void add_duplicate(unsigned key)
{
    struct entry *entry = unused_entry(key);

    assert_int_equal(tested->add_duplicate(table, key, entry), 0);
    model_put(NULL, entry);
}

static void put(unsigned key)
{
    struct entry *entry = unused_entry(key), *there = expected(key), *found = entry;

    assert_int_equal(tested->put(table, key, entry, &found), 0);
    assert_ptr_equal(found, there);
    model_put(there, entry);
}

static void swap(unsigned key)
{
    struct entry *entry = unused_entry(key), *there = expected(key), *found = entry;

    assert_int_equal(tested->swap(table, key, entry, &found), there ? 0 : ENOENT);
    assert_ptr_equal(found, there);
    if (there)
        model_put(there, entry);
}

static void replace(unsigned key)
{
    struct entry *there = expected(key), *entry = unused_entry(key);

    if (!there)
        return;
    assert_int_equal(tested->replace(table, key, there, entry), 0);
    model_put(there, entry);
    assert_int_equal(tested->replace(table, key, there, entry), ENOENT);
    assert_int_equal(tested->replace(table, key, entry, entry), EINVAL);
}

static void erase(unsigned key)
{
    struct entry *there = expected(key), *found = &entries[0];

    assert_int_equal(tested->erase(table, key, &found), there ? 0 : ENOENT);
    assert_ptr_equal(found, there);
    if (there)
        model_remove(there);
}

/* Removes an entry that may have newer duplicates. */
static void remove_one(unsigned key)
{
    struct entry *entry = order[below(held)];

    if (!tested->remove) {
        erase(key);
        return;
    }
    assert_int_equal(tested->remove(table, entry), 0);
    model_remove(entry);
    assert_int_equal(tested->remove(table, entry), ENOENT);
}

/* --------------------------------------------------------------------------------------- checks */

static void check_duplicates(unsigned key)
{
    struct entry *found = tested->get(table, key);

    for (unsigned at = newest(key, held);; at = newest(key, at - 1)) {
        assert_ptr_equal(found, at ? order[at - 1] : NULL);
        if (!at)
            return;
        found = tested->next_duplicate(found);
    }
}

/* Checks what maps find next to a key. */
static void check_neighbours(unsigned key)
{
    const struct prudence_map *map = table; /* also of values */
    const struct key_string *string = &key_strings[key];
    struct entry *above = nearest(key, 1);
    struct prudence_map_bytes probe = {.node.key = key_numbers[key]};
    struct prudence_map_walk walk;

    if (tested->keys == &key_string_count)
        prudence_map_set_bytes(&probe, string->bytes, string->length);
    assert_ptr_equal(tested->at(table_first_from(&walk, map, key)), above);
    assert_ptr_equal(tested->at(prudence_map_next(&walk)),
                     above ? nearest(above->key + 1, 1) : NULL);
    assert_ptr_equal(tested->at(table_ceiling(map, key)), above);
    assert_ptr_equal(tested->at(table_floor(map, key)), nearest(key, -1));
    assert_ptr_equal(tested->at(prudence_map_after(map, &probe.node)), nearest(key + 1, 1));
    assert_ptr_equal(tested->at(prudence_map_before(map, &probe.node)), nearest(key - 1, -1));
    assert_ptr_equal(tested->at(prudence_map_lowest(map)), nearest(0, 1));
    assert_ptr_equal(tested->at(prudence_map_highest(map)), nearest(*tested->keys - 1, -1));
}

static const struct prudence_routes_prefix *prefix_with(unsigned key)
{
    return &key_prefixes[is_ipv6(table)][key];
}

/* Returns the entry with the longest prefix of the address. */
static struct entry *longest(const struct address *address)
{
    struct entry *best = NULL;

    for (unsigned i = 0; i < held; i++)
        if ((!best || prefix_with(order[i]->key)->length > prefix_with(best->key)->length) &&
            prefix_matches(prefix_with(order[i]->key), address->bytes))
            best = order[i];
    return best;
}

/* Returns an address in the prefix, or right before or after it. */
static struct address address_near(unsigned key)
{
    const unsigned most = is_ipv6(table) ? 128 : 32, carries = below(3);
    struct address address;

    memcpy(address.bytes, prefix_with(key)->address, sizeof address.bytes);
    for (unsigned bit = prefix_with(key)->length; bit < most; bit++)
        if (carries == 2 || below(2))
            address.bytes[bit / 8] |= (unsigned char)(0x80u >> bit % 8);
    for (unsigned i = most / 8, carry = below(2) ? carries : 0; i-- > 0 && carry;) {
        address.bytes[i] = (unsigned char)(address.bytes[i] + (carry == 2 ? 1 : 0xff));
        carry = address.bytes[i] == (carry == 2 ? 0 : 0xff) ? carry : 0;
    }
    return address;
}

/* Checks lookups of addresses, alone and, at odd places, by one call. */
static void check_addresses(unsigned key)
{
    unsigned char packed[4 * 4 + 1];
    uintptr_t values[5] = {0, 0, 0, 0, 77};
    const unsigned count = below(5);
    struct entry *wanted[4];

    for (unsigned i = 0; i < 4; i++) {
        const struct address address = address_near(key);

        wanted[i] = longest(&address);
        assert_int_equal(route_to(table, &address), (uintptr_t)wanted[i]);
        memcpy(packed + 1 + 4 * i, address.bytes, 4);
    }
    if (is_ipv6(table))
        return;
    values[count] = 77;
    prudence_routes_lookup_many_ipv4(table, packed + 1, count, values);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(values[i], (uintptr_t)wanted[i]);
    assert_int_equal(values[count], 77);
}

/* Checks that a walk within a prefix finds the keys that follow it and are within. */
static void check_walk_within(unsigned key)
{
    const struct prudence_routes_prefix *within = prefix_with(key);
    struct prudence_routes_walk walk;
    uintptr_t value = prudence_routes_first(&walk, table, within);

    for (; key < *tested->keys && prefix_matches(within, prefix_with(key)->address); key++) {
        if (!expected(key))
            continue;
        assert_int_equal(value, (uintptr_t)expected(key));
        assert_memory_equal(&walk.prefix, prefix_with(key), sizeof walk.prefix);
        value = prudence_routes_next(&walk);
    }
    assert_int_equal(value, 0);
}

static void check_key(unsigned key)
{
    assert_ptr_equal(tested->get(table, key), expected(key));
    if (tested->flags & TABLE_KEEPS)
        check_addresses(key);
    if (tested->next_duplicate)
        check_duplicates(key);
    if (tested->at)
        check_neighbours(key);
}

struct visits {
    bool seen[ENTRIES];
    unsigned count, last;
};

static void visit(unsigned key, struct entry *entry, void *argument)
{
    struct visits *visits = argument;

    assert_true(entry->in && entry->key == key && !visits->seen[entry - entries]);
    assert_true(!(tested->flags & TABLE_SORTED) || !visits->count || key > visits->last);
    visits->seen[entry - entries] = true;
    visits->last = key;
    visits->count++;
}

static void check_all(void)
{
    struct visits visits = {.count = 0};

    tested->walk(table, visit, &visits);
    assert_int_equal(visits.count, held);
    assert_int_equal(tested->count(table), held);
    tested->check(table);
}

static void operate(unsigned step, bool resizing)
{
    /* The table fills and empties several times; in between, a run of steps uses only a few
     * adjacent keys. */
    unsigned key =
        (step % 9000 < 2000 ? step / 9000 * 97 + below(60) : below(*tested->keys)) % *tested->keys;
    unsigned what = below(100), more = step % 12000 < 7000 && held < ENTRIES - 10 ? 60 : 15;

    if (what < more && held < ENTRIES - 10)
        (what % 3 == 0 && tested->add_duplicate ? add_duplicate
         : what % 3 == 1 && tested->put         ? put
                                                : add)(key);
    else if (what < more + 10)
        (tested->replace ? replace : swap)(key);
    else if (held)
        (what % 2 ? erase : remove_one)(key);
    check_key(key);
    check_key(below(*tested->keys));
    if (resizing && step % 500 == 0)
        assert_int_equal(prudence_hash_resize(table, below(5000)), 0);
    if (step % 97 == 0 && tested->flags & TABLE_KEEPS)
        check_walk_within(key);
    if (step % 997 == 0)
        check_all();
}

static void run(unsigned operations, bool resizing)
{
    struct prudence_domain *domain = tested->flags & TABLE_DOMAIN ? manual_domain() : NULL;

    held = 0;
    memset(entries, 0, sizeof entries);
    table =
        resizing ? table_of_domain(domain, 0, 0, PRUDENCE_HASH_FIXED) : table_make(tested, domain);
    random_state = 4711 + test_seed(0) * 1000;
    for (unsigned step = 0; step < operations; step++) {
        operate(step, resizing);
        if (step % 100 == 0 && domain)
            prudence_manual_advance(domain);
    }
    while (held)
        erase(order[below(held)]->key);
    check_all();
    if (domain)
        all_readers_leave(domain);
    assert_int_equal(tested->destroy(table, NULL, NULL), 0);
    if (domain)
        assert_int_equal(prudence_domain_destroy(domain), 0);
}

static void with_all_hashes(bool resizing)
{
    uint64_t (*const usual)(uint64_t) = table_hash;

    if (!tested->add_duplicate) {
        run(OPERATIONS, false);
        return;
    }
    for (unsigned f = 0; f < HASH_FUNCTIONS; f++) {
        table_hash = hash_functions[f];
        run(f == HASH_FUNCTIONS - 1 ? OPERATIONS / 10 : OPERATIONS, resizing);
    }
    table_hash = usual;
}

static void answers_as_the_model_does(void)
{
    with_all_hashes(false);
}

static void answers_by_wide_indexes(void)
{
    struct prudence_routes_attr attr;
    static struct table_kind wide;

    wide = *tested;
    memcpy(&attr, wide.attr, sizeof attr);
    wide.attr = &attr;
    tested = &wide;
    for (attr.prefixes = 1 << 11; attr.prefixes <= 1 << 17; attr.prefixes <<= 6)
        run(OPERATIONS / 8, false);
}

static void answers_while_it_is_resized(void)
{
    if (tested->add_duplicate)
        with_all_hashes(true);
}

static const struct table_case cases[] = {
    {"answers as the model does", answers_as_the_model_does, 0, 0},
    {"answers while it is resized", answers_while_it_is_resized, TABLE_OBJECTS | TABLE_DOMAIN,
     TABLE_SORTED},
    {"answers by wide indexes", answers_by_wide_indexes, TABLE_KEEPS, 0},
};

int main(void)
{
    return table_cases_run(cases, sizeof cases / sizeof cases[0]);
}
