/* SPDX-License-Identifier: MIT */
/*
 * Tables of every kind (cases.h) between any two instructions (under the processor's trap flag,
 * support/step.h). Readers look between those of an update or a resize; updates and resizes happen
 * between those of a reader; and an update happens inside another, where that holds no lock. Keys
 * that stay are always found; a search next to a key skips none of them; a walk finds each of them
 * once; an address has the route of the longest prefix. Two updates end as one after the other,
 * also in nodes of a map that could not shrink.
 *
 * ctest: cost 60
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include <limits.h>

#include "support/deep.h"
#include "support/map_invariants.h"
#include "support/step.h"
#include "tables/cases.h"
#include "tables/hash_resize.h"

/* Runs a test of each case with each kind of table that the case is for. */
static void each_case(void (*run)(const struct test_case *at))
{
    static const struct prudence_hash_attr attr = {.size = sizeof attr,
                                                   .flags = PRUDENCE_HASH_FIXED};
    static struct table_kind fixed;
    uint64_t (*const usual)(uint64_t) = table_hash;

    fixed = table_kinds[TABLE_HASH];
    fixed.attr = &attr;
    tables_are_shared = true;
    for (unsigned i = 0; i < CASES; i++)
        for (unsigned number = 0; number < TABLE_KINDS; number++)
            if (cases[i].kinds >> number & 1) {
                tested = number == TABLE_HASH ? &fixed : &table_kinds[number];
                run(&cases[i]);
                table_hash = usual;
            }
}

static bool is_resized(void)
{
    return tested->attr_size == sizeof(struct prudence_hash_attr) && tested->add_duplicate &&
           tested->flags & TABLE_DOMAIN;
}

static int put(unsigned key, struct entry *fresh, struct entry **found)
{
    return (tested->put ? tested->put : tested->swap)(table, key, fresh, found);
}

/* ------------------------------------------------------------- readers between steps of updates */

static const struct reader *const all_readers[] = {&lookups, &ceilings,     &floors,
                                                   &walks,   &first_routes, &last_routes};
#define READERS_ALL (sizeof all_readers / sizeof all_readers[0])

static uint64_t steps;

/* All readers agree whether the key that is being added or removed is there; but an address may
 * have a route by an index that is changed before or after the prefix, and an identifier is known
 * when it has been added. */
static void look_at_all(const greg_t *registers)
{
    const unsigned uncertain = moving;
    unsigned index;

    if (++steps % 3) /* enough, because the state between two stores is seen several times */
        return;
    index = (unsigned)(looks++ % key_count);
    if (moving < key_count && !(tested->flags & (TABLE_KEEPS | TABLE_CHOOSES))) {
        there[moving] = tested->get(table, moving);
        moving = ITEMS_MOST;
    }
    for (unsigned i = 0; i < READERS_ALL; i++)
        if (has_reader(all_readers[i])) {
            const unsigned from = all_readers[i] == &walks ? 0 : index;

            all_readers[i]->read(from);
            all_readers[i]->check(from, there, there);
        }
    moving = uncertain;
}

static void add_moving(void *unused)
{
    assert_int_equal(tested->add(table, moving, &items[moving], NULL), 0);
}

static void remove_moving(void *unused)
{
    assert_ptr_equal(erase(moving), &items[moving]);
}

/* While its object is replaced, the key stays. */
static void replace_there(void *key)
{
    const unsigned index = *(const unsigned *)key;
    struct entry *replaced;

    if (tested->replace)
        assert_int_equal(tested->replace(table, index, &items[index], &twins[index]), 0);
    else
        assert_int_equal(put(index, &twins[index], NULL), 0);
    assert_int_equal(put(index, &items[index], &replaced), 0);
    assert_ptr_equal(replaced, &twins[index]);
}

static void resize_twice(void *unused)
{
    assert_int_equal(prudence_hash_resize(table, 512), 0);
    assert_int_equal(prudence_hash_resize(table, 64), 0);
}

static void stepped(unsigned index, void (*update)(void *unused), bool after)
{
    moving = index;
    step_through(update, NULL, look_at_all);
    moving = ITEMS_MOST;
    there[index] = after;
    check_table(true);
}

static void readers_of_updates(const struct test_case *at)
{
    begin_case(at);
    for (unsigned i = 0; i < key_count; i++) {
        if (stays[i])
            continue;
        stepped(i, add_moving, true);
        step_through(replace_there, &i, look_at_all);
    }
    if (is_resized())
        step_through(resize_twice, NULL, look_at_all);
    for (unsigned i = 0; i < key_count; i++)
        if (!stays[i])
            stepped(i, remove_moving, false);
    for (unsigned i = key_count; i-- > 0;) /* the other way round */
        if (!stays[i])
            stepped(i, add_moving, true);
    for (unsigned i = key_count; i-- > 0;)
        if (!stays[i])
            stepped(i, remove_moving, false);
    if (looks < 100)
        fail_msg("%s: %llu looks", at->name, (unsigned long long)looks);
    end_case();
}

TEST(readers_between_any_two_instructions_of_updates)
{
    each_case(readers_of_updates);
}

/* ------------------------------------------------------------- updates between steps of readers */

#define READER_STOPS 2 /* about this many of the instructions of each read */

static unsigned here, later, asked;
static const struct reader *reader;
static bool everything[ITEMS_MOST];

enum plan {
    PLAN_COME_AND_GO, /* may replace all nodes; the keys stay the same */
    PLAN_GO_AND_COME,
    PLAN_SWAP,  /* inserts every other key, then removes the keys that were present */
    PLAN_APART, /* the same, with steps of the reader in between */
    PLAN_RESIZE,
    PLAN_FINISH, /* the rest of a resize that has begun */
    PLANS,
};
static enum plan plan;

/* Begins a resize that has not moved any group yet. */
static void begin_resize(void)
{
    assert_true(hash_resize_begin(hash_of(table), ((struct prudence_hash *)table)->view, 9));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

/* Runs before and after the event. */
static void put_back(bool before)
{
    if (before && plan == PLAN_GO_AND_COME)
        come(0, 1);
    if (before && (plan == PLAN_SWAP || plan == PLAN_APART)) {
        come(0, 2); /* in this order, so that a reader passes empty slots first */
        come(1, 2);
        go(0, 2);
    }
    if (!before && plan == PLAN_GO_AND_COME)
        go(0, 1);
    if (!before && (plan == PLAN_SWAP || plan == PLAN_APART))
        go(0, 2);
    if (before && plan == PLAN_FINISH)
        begin_resize();
    if (!before && plan >= PLAN_RESIZE)
        assert_int_equal(prudence_hash_resize(table, 64), 0);
}

static void happen_first(void)
{
    if (plan == PLAN_COME_AND_GO)
        come(0, 1);
    if (plan == PLAN_SWAP || plan == PLAN_APART)
        come(0, 2);
    if (plan >= PLAN_RESIZE)
        assert_int_equal(prudence_hash_resize(table, 512), 0);
}

static void happen_then(void)
{
    if (plan == PLAN_SWAP || plan == PLAN_APART)
        go(1, 2);
    else if (plan < PLAN_RESIZE)
        go(0, 1);
    if (plan == PLAN_GO_AND_COME)
        come(0, 1);
}

static void happen(const greg_t *registers)
{
    if (looks == here)
        happen_first();
    if (looks == later) {
        happen_then();
        step_enough = true;
    }
    looks++;
}

static void read_once(void *unused)
{
    prudence_read_lock();
    reader->read(asked);
    prudence_read_unlock();
}

static void stop_reader(bool everywhere)
{
    uint64_t all;
    unsigned stride;

    here = later = UINT_MAX;
    looks = 0;
    step_through(read_once, NULL, happen);
    all = looks;
    assert_true(all > 10);
    stride = everywhere ? deep_stride(5) : 1 + (unsigned)all / READER_STOPS;
    for (here = asked % 3; here < all; here += stride) {
        looks = 0;
        later = here + (plan == PLAN_APART ? 1 + (unsigned)all / 5 : 0);
        step_through(read_once, NULL, happen);
        assert_true(looks > here);
        if (looks <= later)
            happen_then();
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
    for (asked = 0; asked < key_count; asked += reader == &walks ? ITEMS_MOST : 1 + key_count / 2)
        stop_reader(reader != &walks && (plan >= PLAN_RESIZE || !(tested->flags & TABLE_DOMAIN) ||
                                         (at->everywhere && plan == PLAN_SWAP)));
    if (plan == PLAN_GO_AND_COME)
        go(0, 1);
    if (plan == PLAN_SWAP || plan == PLAN_APART)
        go(1, 2);
    end_case();
}

static void stop_all_readers(const struct test_case *at)
{
    const unsigned stride = deep_stride(2);

    for (unsigned i = 0; i < READERS_ALL; i++) {
        reader = all_readers[i];
        for (unsigned p = (i + (unsigned)(at - cases)) % stride; has_reader(reader) && p < PLANS;
             p += stride)
            if (p < PLAN_RESIZE || is_resized())
                readers_of(at, (enum plan)p);
    }
}

TEST(a_reader_may_be_stopped_anywhere)
{
    each_case(stop_all_readers);
}

/* ------------------------------------------------------------- updates between steps of updates */

#define UPDATE_STOPS 3 /* about this many of the instructions of each update that hold no lock */

static bool is_locked_below(uintptr_t link)
{
    struct map_node *node = map_inner(link);

    if (!link || map_is_object(link))
        return false;
    if (node->lock != MAP_FREE)
        return true;
    for (unsigned byte = 0; byte < 256; byte++) {
        const uintptr_t *slot = map_slot(node, (uint8_t)byte);

        if (slot && is_locked_below(*slot))
            return true;
    }
    return false;
}

/* Whether another thread would wait. An update of a map is in the allocator outside of its own
 * section only. */
static bool is_locked(void)
{
    const struct prudence_map *map = table;

    if (tested->at)
        return !prudence_read_lock_held() || map->top.node.lock != MAP_FREE ||
               is_locked_below(map->top.root);
    return os_busy;
}

enum first { FIRST_ADDS, FIRST_PUTS, FIRST_REPLACES, FIRST_ERASES, FIRSTS };
enum second { SAME_ADDED, SAME_PUT, SAME_ERASED, OTHERS_COME, OTHERS_GO, OTHERS_REPLACED, SECONDS };

static enum first first;
static enum second second;
static unsigned first_key;
static bool in_table; /* the first key is there before both */
static struct entry before;

/* Results of two updates, and what is in the table after them, as a walk finds it. */
struct outcome {
    int errors[2];
    const struct entry *found[2], *left[ITEMS_MOST];
    unsigned count;
};
static struct outcome outcome;

static void update_first(void *unused)
{
    struct entry *const fresh = &items[first_key], *found = NULL;
    int error;

    if (first == FIRST_ADDS)
        error = tested->add(table, first_key, fresh, &found);
    else if (first == FIRST_REPLACES && tested->replace)
        error = tested->replace(table, first_key, &before, fresh);
    else if (first == FIRST_ERASES && tested->remove) /* an erasure looks up, and then removes */
        error = tested->remove(table, &before);
    else if (first == FIRST_ERASES)
        error = tested->erase(table, first_key, &found);
    else
        error = put(first_key, fresh, &found);
    step_enough = true;
    outcome.errors[0] = error;
    outcome.found[0] = found;
}

static void others_come_or_go(void)
{
    for (unsigned i = 0; i < key_count; i++) {
        if (stays[i] || i == first_key)
            continue;
        if (second == OTHERS_COME)
            assert_int_equal(tested->add(table, i, &items[i], NULL), 0);
        else
            assert_ptr_equal(erase(i), &items[i]);
        if (second == OTHERS_REPLACED)
            assert_int_equal(tested->add(table, i, &twins[i], NULL), 0);
    }
}

static void update_second(void)
{
    struct entry *const fresh = &twins[first_key], *found = NULL;
    int error = 0;

    if (second == SAME_ADDED)
        error = tested->add(table, first_key, fresh, &found);
    else if (second == SAME_PUT)
        error = put(first_key, fresh, &found);
    else if (second == SAME_ERASED)
        error = tested->erase(table, first_key, &found);
    else
        others_come_or_go();
    outcome.errors[1] = error;
    outcome.found[1] = found;
}

static bool happened;

static void second_comes(const greg_t *registers)
{
    if (is_locked() || looks++ < here)
        return;
    happened = step_enough = true;
    update_second();
}

static void note_left(unsigned key, struct entry *entry, void *unused)
{
    outcome.left[outcome.count++] = entry;
}

enum { FIRST_AND_SECOND, SECOND_AND_FIRST, SECOND_IN_FIRST };

static struct outcome in_order(unsigned order)
{
    for (unsigned i = 0; i < key_count; i++)
        if (!stays[i] && (erase(i), i != first_key && second > OTHERS_COME))
            assert_int_equal(tested->add(table, i, &items[i], NULL), 0);
    before.key = first_key;
    if (in_table)
        assert_int_equal(tested->add(table, first_key, &before, NULL), 0);
    memset(&outcome, 0, sizeof outcome);
    looks = happened = 0;
    if (order == SECOND_AND_FIRST)
        update_second();
    if (order == SECOND_IN_FIRST)
        step_through(update_first, NULL, second_comes);
    else
        update_first(NULL);
    if (order == FIRST_AND_SECOND)
        update_second();
    check_table(false);
    tested->walk(table, note_left, NULL);
    return outcome;
}

static void stop_update(const struct test_case *at)
{
    const struct outcome one = in_order(FIRST_AND_SECOND), other = in_order(SECOND_AND_FIRST);
    unsigned stride;

    here = UINT_MAX;
    in_order(SECOND_IN_FIRST);
    stride = tested->flags & TABLE_DOMAIN ? 1 + (unsigned)looks / UPDATE_STOPS : deep_stride(11);
    for (here = (first + second) % stride;; here += stride) {
        const struct outcome now = in_order(SECOND_IN_FIRST);

        if (!happened)
            return;
        if (memcmp(&now, &one, sizeof now) && memcmp(&now, &other, sizeof now))
            fail_msg(
                "%s, %s: update %d before instruction %u of update %d: results %d and %d, %u "
                "left",
                at->name, tested->name, second, here, first, now.errors[1], now.errors[0],
                now.count);
    }
}

/* Stops updates of the first and of the last key that comes and goes. */
static void stop_updates(const struct test_case *at)
{
    const unsigned stride = tested->flags & TABLE_DOMAIN ? deep_stride(7) : 1;
    const unsigned ways = 2 * FIRSTS * SECONDS;

    if (tested->flags & TABLE_DOMAIN && !tested->at && !(tested->flags & TABLE_KEEPS))
        return; /* it is not known when these hold a lock */
    begin_case(at);
    for (unsigned way = (unsigned)(at - cases) % stride; way < ways; way += stride) {
        first = (enum first)(way % FIRSTS);
        second = (enum second)(way / FIRSTS % SECONDS);
        in_table = first >= FIRST_REPLACES || (first == FIRST_PUTS && way >= ways / 2);
        first_key = second % 2 ? key_count - 1 : 0;
        while (stays[first_key])
            first_key += second % 2 ? UINT_MAX : 1;
        stop_update(at);
    }
    for (unsigned i = 0; i < key_count; i++)
        if (!stays[i])
            erase(i);
    end_case();
}

TEST(updates_between_any_two_instructions_of_updates)
{
    each_case(stop_updates);
}

/* ------------------------------------------------- nodes that are too large, for want of memory */

#define HELD_MOST 20000

static void *held[HELD_MOST];
static unsigned held_count;

/* Allocates all nodes of the smallest kind. */
static void hold_small_nodes(void)
{
    memory_fail(0, UINT32_MAX);
    for (held_count = 0; held_count < HELD_MOST; held_count++) {
        held[held_count] = prudence_cache_alloc(((struct prudence_map *)table)->caches[MAP_FOUR]);
        if (!held[held_count])
            return;
    }
    fail_msg("there is no end of nodes");
}

static void release_small_nodes(void)
{
    memory_succeed();
    while (held_count)
        prudence_cache_free(((struct prudence_map *)table)->caches[MAP_FOUR], held[--held_count]);
}

static bool lonely; /* the first update's key is the only one in its node, and another one comes */

static void another_goes_on(const greg_t *registers)
{
    if (is_locked() || looks++ < here)
        return;
    happened = step_enough = true;
    if (lonely)
        assert_int_equal(tested->add(table, 1, &items[1], NULL), 0);
    else
        assert_ptr_equal(erase(1), &items[1]);
}

static void remove_first(void *unused)
{
    assert_ptr_equal(erase(0), &items[0]);
    step_enough = true;
}

/* A node of 18 slots keeps two keys, or one, because it cannot become smaller. */
static bool remove_next_to(void)
{
    const struct prudence_map *map = table;

    come(0, 1);
    hold_small_nodes();
    for (unsigned i = lonely ? 1 : 2; i < key_count; i++)
        assert_ptr_equal(erase(i), &items[i]);
    assert_int_equal(map_inner(map->top.root)->kind, MAP_EIGHTEEN);
    happened = false;
    looks = 0;
    step_through(remove_first, NULL, another_goes_on);
    release_small_nodes();
    check_table(false);
    assert_null(tested->get(table, 0));
    assert_int_equal(tested->get(table, 1) != NULL, lonely == happened);
    erase(1);
    assert_int_equal(map->top.root, 0);
    return happened;
}

TEST(removals_from_nodes_that_could_not_shrink)
{
    static const struct test_case six = {.name = "six", .pass = 6, .pass_from = 100};

    tested = &table_kinds[TABLE_MAP];
    for (unsigned way = 0; way < 2; way++) {
        begin_case(&six);
        lonely = way;
        for (here = 0; remove_next_to(); here += 2 * deep_stride(3)) {
        }
        assert_true(here > 10);
        end_case();
    }
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"), pin_thread())
