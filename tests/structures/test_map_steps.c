/* SPDX-License-Identifier: MIT */
/*
 * Readers of an ordered map between any two instructions of updates, and updates between any two instructions of
 * readers (under the processor's trap flag, support/step.h). Keys that stay are always found; ceiling and floor pass over
 * none of them; a walk gives keys that rise, those that stay exactly once, and none that was never there.
 *
 * Each case has some keys that stay and some that come and go, so that the updates do one of all that updates can do: fill a slot,
 * make nodes for long common beginnings, cut a prefix, append, grow and shrink through all kinds of nodes, give a node's place to its
 * only object, join two nodes, unlink a line of nodes.
 */
#define _GNU_SOURCE
#include <limits.h>

#include "support/map_test.h"
#include "support/step.h"

#if STEP_POSSIBLE

#define KEYS_MOST 300
#define STOPS     6 /* about so many of the instructions of each read */

static struct item items[KEYS_MOST], twins[KEYS_MOST];
static bool stays[KEYS_MOST]; /* by the index of the key; the others come and go */
static bool there[KEYS_MOST]; /* those that are in the map between two updates */
static struct prudence_map *map;
static uint64_t steps, looks;
static unsigned moving = KEYS_MOST; /* the key that is just being added or removed */

/* ---------------------------------------------------------------------------------------- cases */

struct test_case {
    const char *name;
    const char *staying[12], *passing[8]; /* strings */
    unsigned stay, pass;                  /* or so many numbers that differ in their last byte */
    uint64_t stay_from, pass_from;
};

static const struct test_case cases[] = {
    {.name = "an empty map", .pass = 1},
    {.name = "beside an object", .stay = 1, .pass = 1, .pass_from = 200},
    {.name = "four to eighteen and back", .stay = 3, .pass = 3, .pass_from = 100},
    {.name = "eighteen to forty and back", .stay = 12, .pass = 5, .pass_from = 64},
    {.name = "forty to ninety and back", .stay = 28, .pass = 5, .pass_from = 100},
    {.name = "ninety to all and back", .stay = 64, .pass = 9, .pass_from = 100},
    {.name = "in the middle of a node", .stay = 3, .pass = 3, .stay_from = 10},
    {.name = "a fork at the first byte", .stay = 2, .pass = 2, .pass_from = 1ull << 60},
    {.name = "a prefix is cut twice", .stay = 2, .pass = 1, .pass_from = 0x400000000000},
    {.name = "two keys far away", .stay = 4, .pass = 2, .pass_from = 0x7700000000},
    {.name = "a line of nodes",
     .staying = {"b"},
     .passing = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2"}},
    {.name = "ends",
     .staying = {"", "abc", "abcdefghijklmnopqrstuvw"},
     .passing = {"a", "ab", "abcdefghijk", "abcdefghijklmnopqrstu"}},
    {.name = "a string that begins all others",
     .staying = {"xyz1", "xyz2", "xyz3", "xyz4"},
     .passing = {"xyz", "x", ""}},
    {.name = "a long prefix is cut",
     .staying = {"http://www.example.org/1", "http://www.example.org/2"},
     .passing = {"http://www.example.com/", "http://", "https://www.example.org"}},
    {.name = "nodes are joined",
     .staying = {"prefix", "prefixed1", "prefixed2"},
     .passing = {"pre", "prefi", "prefixe", "q"}},
};
#define CASES (sizeof cases / sizeof cases[0])

static bool is_string(const struct test_case *at)
{
    return at->passing[0] != NULL;
}

static bool starts_out(const struct test_case *at, unsigned index)
{
    uint64_t number;

    for (unsigned i = 0; is_string(at) && i < 12 && at->staying[i]; i++)
        if (strlen(at->staying[i]) == map_keys[index].length &&
            !memcmp(at->staying[i], map_keys[index].bytes, map_keys[index].length))
            return true;
    if (is_string(at))
        return false;
    number = number_of(index);
    return number >= at->stay_from && number < at->stay_from + 2 * at->stay &&
           (number - at->stay_from) % 2 == 0;
}

static void make_keys(const struct test_case *at)
{
    clear_keys(is_string(at));
    for (unsigned i = 0; i < 12 && at->staying[i]; i++)
        add_key(at->staying[i], strlen(at->staying[i]));
    for (unsigned i = 0; i < 8 && at->passing[i]; i++)
        add_key(at->passing[i], strlen(at->passing[i]));
    for (unsigned i = 0; i < at->stay; i++)
        add_number(at->stay_from + 2 * i);
    for (unsigned i = 0; i < at->pass; i++)
        add_number((at->pass_from | 1) + 2 * i);
    sort_keys();
    assert_true(map_key_count <= KEYS_MOST);
}

static void begin_case(const struct test_case *at)
{
    make_keys(at);
    map = map_of_domain(NULL);
    memset(there, 0, sizeof there);
    for (unsigned i = 0; i < map_key_count; i++) {
        set_key(&items[i], i);
        set_key(&twins[i], i);
        stays[i] = starts_out(at, i);
        if (stays[i])
            assert_int_equal(prudence_map_add_unique(map, &items[i].node.node, NULL), 0);
        there[i] = stays[i];
    }
    prudence_read_lock(); /* this thread is registered, for which it blocks signals, before it is stepped */
    prudence_read_unlock();
    steps = looks = 0;
}

static void end_case(void)
{
    check_map(map, false);
    for (unsigned i = 0; i < map_key_count; i++)
        assert_ptr_equal(remove_index(map, i), stays[i] ? &items[i] : NULL);
    assert_int_equal(prudence_map_destroy(map, NULL, NULL), 0);
}

/* ------------------------------------------------------------------------- what a reader may see */

/* Between `from` and `to` no key was passed over that is there for certain. */
static void check_gap(unsigned from, unsigned to, const bool *certain)
{
    for (unsigned i = from; i < to; i++)
        if (certain[i] && i != moving)
            fail_msg("key %u of %u is passed over", i, map_key_count);
}

static void check_found(const struct item *found, unsigned index, const bool *possible)
{
    if (found != &items[index] && found != &twins[index])
        fail_msg("another object is found");
    if (!possible[index] && index != moving)
        fail_msg("key %u of %u is found, which is not there", index, map_key_count);
}

/* What a read finds, in its order; looked at when it is over. */
static const struct item *seen[KEYS_MOST + 1];
static unsigned seen_count;

static void saw(const struct item *item)
{
    seen_count = item ? 1 : 0;
    seen[0] = item;
}

static void read_lookup(unsigned index)
{
    saw(look_up(map, index));
}

static void check_lookup(unsigned index, const bool *certain, const bool *possible)
{
    if (seen_count)
        check_found(seen[0], index, possible);
    else
        check_gap(index, index + 1, certain);
}

static void read_ceiling(unsigned index)
{
    saw(ceiling_of(map, index));
}

static void check_ceiling(unsigned index, const bool *certain, const bool *possible)
{
    check_gap(index, seen_count ? seen[0]->index : map_key_count, certain);
    if (seen_count)
        check_found(seen[0], seen[0]->index, possible);
    assert_true(!seen_count || seen[0]->index >= index);
}

static void read_floor(unsigned index)
{
    saw(floor_of(map, index));
}

static void check_floor(unsigned index, const bool *certain, const bool *possible)
{
    check_gap(seen_count ? seen[0]->index + 1 : 0, index + 1, certain);
    if (seen_count)
        check_found(seen[0], seen[0]->index, possible);
    assert_true(!seen_count || seen[0]->index <= index);
}

static void read_walk(unsigned from)
{
    struct prudence_map_walk walk;
    const struct item *found = first_from(&walk, map, from);

    for (seen_count = 0; found && seen_count <= map_key_count; seen_count++) {
        seen[seen_count] = found;
        found = item_of(prudence_map_next(&walk));
    }
}

static void check_walk(unsigned from, const bool *certain, const bool *possible)
{
    unsigned next = from;

    for (unsigned i = 0; i < seen_count; i++) {
        if (seen[i]->index < next)
            fail_msg("a walk does not rise");
        check_gap(next, seen[i]->index, certain);
        check_found(seen[i], seen[i]->index, possible);
        next = seen[i]->index + 1;
    }
    check_gap(next, map_key_count, certain);
}

struct reader {
    void (*read)(unsigned index);
    void (*check)(unsigned index, const bool *certain, const bool *possible);
};

static const struct reader lookups = {read_lookup, check_lookup},
                           ceilings = {read_ceiling, check_ceiling},
                           floors = {read_floor, check_floor}, walks = {read_walk, check_walk};

static void look(const struct reader *reader, unsigned index)
{
    reader->read(index);
    reader->check(index, there, there);
}

/* --------------------------------------------------------------- readers between steps of updates */

static void look_at_all(const greg_t *registers)
{
    unsigned index;

    (void)registers;
    if (++steps % 3) /* enough: what happened between two stores is seen several times */
        return;
    index = (unsigned)(looks++ % map_key_count);
    look(&lookups, index);
    look(&ceilings, index);
    look(&floors, index);
    look(&walks, 0);
}

static void add_moving(void *unused)
{
    (void)unused;
    assert_int_equal(prudence_map_add_unique(map, &items[moving].node.node, NULL), 0);
}

/* While its object is replaced, the key stays. */
static void replace_moving(void *unused)
{
    struct prudence_map_node *replaced;

    (void)unused;
    assert_int_equal(
        prudence_map_replace(map, &items[moving].node.node, &twins[moving].node.node), 0);
    assert_int_equal(prudence_map_add_replace(map, &items[moving].node.node, &replaced), 0);
    assert_ptr_equal(item_of(replaced), &twins[moving]);
}

static void look_for_replaced(const greg_t *registers)
{
    unsigned saved = moving;

    moving = KEYS_MOST;
    look_at_all(registers);
    moving = saved;
}

static void remove_moving(void *unused)
{
    (void)unused;
    assert_ptr_equal(remove_index(map, moving), &items[moving]);
}

static void stepped(unsigned index, void (*update)(void *unused), bool after)
{
    moving = index;
    step_through(update, NULL, look_at_all);
    moving = KEYS_MOST;
    there[index] = after;
    check_map(map, true);
}

static void updates_of(const struct test_case *at)
{
    begin_case(at);
    for (unsigned i = 0; i < map_key_count; i++) {
        if (stays[i])
            continue;
        stepped(i, add_moving, true);
        moving = i;
        step_through(replace_moving, NULL, look_for_replaced);
        moving = KEYS_MOST;
    }
    for (unsigned i = 0; i < map_key_count; i++)
        if (!stays[i])
            stepped(i, remove_moving, false);
    for (unsigned i = map_key_count; i-- > 0;) /* the other way round */
        if (!stays[i])
            stepped(i, add_moving, true);
    for (unsigned i = map_key_count; i-- > 0;)
        if (!stays[i])
            stepped(i, remove_moving, false);
    if (looks < 100)
        fail_msg("%s: %llu looks", at->name, (unsigned long long)looks);
    end_case();
}

static void readers_between_any_two_instructions_of_updates(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CASES; i++)
        updates_of(&cases[i]);
}

/* --------------------------------------------------------------- updates between steps of readers */

static unsigned here, asked;
static const struct reader *reader;
static bool everything[KEYS_MOST];

enum plan {
    PLAN_COME,
    PLAN_GO,
    PLAN_COME_AND_GO, /* all nodes may be others after that, with the same keys */
    PLAN_GO_AND_COME,
    PLAN_SWAP, /* every other one comes, and then those go that were there */
    PLANS,
};
static enum plan plan;

/* Those that do not stay, from the first or the second on: each, or every other one. */
static void come(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < map_key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_int_equal(prudence_map_add_unique(map, &items[i].node.node, NULL), 0);
}

static void go(unsigned first, unsigned every)
{
    for (unsigned i = 0, passing = 0; i < map_key_count; i++)
        if (!stays[i] && passing++ % every == first)
            assert_ptr_equal(remove_index(map, i), &items[i]);
}

/* Before and after what happens. */
static void put_back(bool before)
{
    if (before && (plan == PLAN_GO || plan == PLAN_GO_AND_COME))
        come(0, 1);
    if (before && plan == PLAN_SWAP)
        come(1, 2);
    if (!before && (plan == PLAN_COME || plan == PLAN_GO_AND_COME))
        go(0, 1);
    if (!before && plan == PLAN_SWAP)
        go(0, 2);
}

static void happen(const greg_t *registers)
{
    (void)registers;
    if (looks++ != here)
        return;
    if (plan == PLAN_COME || plan == PLAN_COME_AND_GO)
        come(0, 1);
    if (plan == PLAN_SWAP)
        come(0, 2);
    if (plan == PLAN_SWAP)
        go(1, 2);
    else if (plan != PLAN_COME)
        go(0, 1);
    if (plan == PLAN_GO_AND_COME)
        come(0, 1);
    step_enough = true;
}

static void read_once(void *unused)
{
    (void)unused;
    prudence_read_lock();
    reader->read(asked);
    prudence_read_unlock();
}

static void stop_reader(void)
{
    uint64_t all;

    here = UINT_MAX;
    looks = 0;
    step_through(read_once, NULL, happen);
    all = looks;
    assert_true(all > 10);
    for (here = asked % 3; here < all; here += 1 + (unsigned)all / STOPS) {
        looks = 0;
        step_through(read_once, NULL, happen);
        assert_true(looks > here);
        reader->check(asked, stays, everything);
        put_back(false);
        put_back(true);
    }
}

static void readers_of(const struct test_case *at, enum plan what)
{
    plan = what;
    begin_case(at);
    memset(everything, true, sizeof everything);
    put_back(true);
    for (asked = 0; asked < map_key_count; asked += 1 + map_key_count / 3)
        stop_reader();
    if (plan == PLAN_GO || plan == PLAN_GO_AND_COME)
        go(0, 1);
    if (plan == PLAN_SWAP)
        go(1, 2);
    end_case();
}

static void stopped_anywhere(const struct reader *what)
{
    reader = what;
    for (unsigned i = 0; i < CASES; i++)
        for (unsigned p = 0; p < PLANS; p++)
            readers_of(&cases[i], (enum plan)p);
}

static void a_lookup_may_be_stopped_anywhere(void **state)
{
    (void)state;
    stopped_anywhere(&lookups);
}

static void a_ceiling_may_be_stopped_anywhere(void **state)
{
    (void)state;
    stopped_anywhere(&ceilings);
}

static void a_floor_may_be_stopped_anywhere(void **state)
{
    (void)state;
    stopped_anywhere(&floors);
}

static void a_walk_may_be_stopped_anywhere(void **state)
{
    (void)state;
    stopped_anywhere(&walks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_between_any_two_instructions_of_updates),
        cmocka_unit_test(a_lookup_may_be_stopped_anywhere),
        cmocka_unit_test(a_ceiling_may_be_stopped_anywhere),
        cmocka_unit_test(a_floor_may_be_stopped_anywhere),
        cmocka_unit_test(a_walk_may_be_stopped_anywhere),
    };

    prudence_option_set("rseq", "0"); /* steps would restart a sequence for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
