/* SPDX-License-Identifier: MIT */
/*
 * Between any two instructions of an update of an ordered map (under the processor's trap flag,
 * support/step.h), readers look, and other updates run, as far as no lock is held. Keys that stay
 * are always found; ceiling and floor skip none of them; a walk's keys rise, and include those that
 * stay exactly once, and none that was never present.
 *
 * ctest: cost 20
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "support/map_cases.h"
#include "support/deep.h"
#include "support/step.h"

static uint64_t steps;

static void look(const struct reader *reader, unsigned index)
{
    reader->read(index);
    reader->check(index, there, there);
}

/* ------------------------------------------------------------- readers between steps of updates */

static void look_at_all(const greg_t *registers)
{
    unsigned index;

    if (++steps % 3) /* enough, because the state between two stores is seen several times */
        return;
    index = (unsigned)(looks++ % key_count);
    look(&lookups, index);
    look(&ceilings, index);
    look(&floors, index);
    look(&walks, 0);
}

static void add_moving(void *unused)
{
    assert_int_equal(tested->add(map, moving, &items[moving], NULL), 0);
}

/* While its object is replaced, the key stays. */
static void replace_moving(void *unused)
{
    struct entry *replaced;

    assert_int_equal(tested->replace(map, moving, &items[moving], &twins[moving]), 0);
    assert_int_equal(tested->put(map, moving, &items[moving], &replaced), 0);
    assert_ptr_equal(replaced, &twins[moving]);
}

static void look_for_replaced(const greg_t *registers)
{
    unsigned saved = moving;

    moving = ITEMS_MOST;
    look_at_all(registers);
    moving = saved;
}

static void remove_moving(void *unused)
{
    assert_ptr_equal(erase(moving), &items[moving]);
}

static void stepped(unsigned index, void (*update)(void *unused), bool after)
{
    moving = index;
    step_through(update, NULL, look_at_all);
    moving = ITEMS_MOST;
    there[index] = after;
    check_map(map, true);
}

static void updates_of(const struct test_case *at)
{
    begin_case(at);
    for (unsigned i = 0; i < key_count; i++) {
        if (stays[i])
            continue;
        stepped(i, add_moving, true);
        moving = i;
        step_through(replace_moving, NULL, look_for_replaced);
        moving = ITEMS_MOST;
    }
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
    for (unsigned i = 0; i < CASES; i++)
        updates_of(&cases[i]);
}

/* ------------------------------------------------------------- updates between steps of updates */

#define STOPS 4 /* about this many of the instructions of each update that hold no lock */

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

/* Acts as another thread that finds no lock taken: the first update is inside a round, so not in
 * the allocator. */
static unsigned here, first_key;
static bool adding, happened;

enum others {
    OTHERS_COME,
    OTHERS_GO,
    OTHERS_GO_AND_COME,
    SAME_GOES, /* removes or adds the first update's key before it */
    OTHERS_MOST,
};
static enum others others;

static void come_or_go(bool coming)
{
    for (unsigned i = 0; i < key_count; i++) {
        if (stays[i] || i == first_key)
            continue;
        if (coming)
            assert_int_equal(tested->add(map, i, &items[i], NULL), 0);
        else
            assert_ptr_equal(erase(i), &items[i]);
    }
}

static bool same_done; /* the other update has changed the key */

static void others_go_on(const greg_t *registers)
{
    if (!prudence_read_lock_held() || map->top.node.lock != MAP_FREE ||
        is_locked_below(map->top.root) || looks++ < here)
        return;
    happened = step_enough = true;
    if (others == SAME_GOES && adding)
        same_done = tested->add(map, first_key, &twins[first_key], NULL) == 0;
    else if (others == SAME_GOES)
        same_done = erase(first_key) != NULL;
    else
        come_or_go(others == OTHERS_COME);
    if (others == OTHERS_GO_AND_COME)
        come_or_go(true);
}

static void first_update(void *unused)
{
    bool done;

    if (adding)
        done = tested->add(map, first_key, &items[first_key], NULL) == 0;
    else
        done = erase(first_key) != NULL;
    step_enough = true;
    if (done == same_done)
        fail_msg("two updates did the same, or none");
}

static void check_all(bool others_there)
{
    check_map(map, false);
    for (unsigned i = 0; i < key_count; i++)
        assert_int_equal(tested->get(map, i) != NULL,
                         stays[i] || (i == first_key ? adding : others_there));
}

/* Returns false if the first update had already ended. */
static bool stop_update(void)
{
    bool before = others == OTHERS_GO || others == OTHERS_GO_AND_COME, after;

    if (before)
        come_or_go(true);
    if (!adding)
        assert_int_equal(tested->add(map, first_key, &items[first_key], NULL), 0);
    happened = same_done = false;
    looks = 0;
    step_through(first_update, NULL, others_go_on);
    after = happened ? others == OTHERS_COME || others == OTHERS_GO_AND_COME : before;
    check_all(after);
    if (adding)
        assert_non_null(erase(first_key));
    if (after)
        come_or_go(false);
    return happened;
}

/* Stops updates of the first and of the last key that comes and goes. */
static void stop_updates_of(const struct test_case *at)
{
    uint64_t all;

    begin_case(at);
    for (first_key = others % 2 ? key_count - 1 : 0; stays[first_key];)
        first_key += others % 2 ? UINT32_MAX : 1;
    here = UINT32_MAX;
    assert_false(stop_update());
    all = looks;
    for (here = 11 * others; stop_update(); here += 1 + (unsigned)all / STOPS) {
    }
    end_case();
}

TEST(updates_between_any_two_instructions_of_updates)
{
    const unsigned stride = deep_stride(3);

    for (unsigned i = 0; i < CASES; i++)
        for (unsigned way = i % stride; way < 2 * OTHERS_MOST; way += stride) {
            adding = way % 2;
            others = (enum others)(way / 2);
            stop_updates_of(&cases[i]);
        }
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
        held[held_count] = prudence_cache_alloc(map->caches[MAP_FOUR]);
        if (!held[held_count])
            return;
    }
    fail_msg("there is no end of nodes");
}

static void release_small_nodes(void)
{
    memory_succeed();
    while (held_count)
        prudence_cache_free(map->caches[MAP_FOUR], held[--held_count]);
}

static bool lonely; /* the first update's key is the only one in its node, and another one comes */

static void another_goes_on(const greg_t *registers)
{
    if (!prudence_read_lock_held() || map->top.node.lock != MAP_FREE ||
        is_locked_below(map->top.root) || looks++ < here)
        return;
    happened = step_enough = true;
    if (lonely)
        assert_int_equal(tested->add(map, 1, &items[1], NULL), 0);
    else
        assert_ptr_equal(erase(1), &items[1]);
}

static void remove_first(void *unused)
{
    assert_ptr_equal(erase(0), &items[0]);
    step_enough = true;
}

/* A node of 18 slots keeps two keys, or one, because it cannot become smaller. */
static bool remove_beside(void)
{
    come(0, 1);
    hold_small_nodes();
    for (unsigned i = lonely ? 1 : 2; i < key_count; i++)
        assert_ptr_equal(erase(i), &items[i]);
    assert_int_equal(map_inner(map->top.root)->kind, MAP_EIGHTEEN);
    happened = false;
    looks = 0;
    step_through(remove_first, NULL, another_goes_on);
    release_small_nodes();
    check_map(map, false);
    assert_null(tested->get(map, 0));
    assert_int_equal(tested->get(map, 1) != NULL, lonely == happened);
    erase(1);
    assert_int_equal(map->top.root, 0);
    return happened;
}

TEST(removals_from_nodes_that_could_not_shrink)
{
    static const struct test_case six = {.name = "six", .pass = 6, .pass_from = 100};

    for (unsigned way = 0; way < 2; way++) {
        begin_case(&six);
        lonely = way;
        for (here = 0; remove_beside(); here += 2 * deep_stride(3)) {
        }
        assert_true(here > 10);
        end_case();
    }
}

/* Steps would restart a sequence for ever. */
SUITE(prudence_option_set("rseq", "0"))
