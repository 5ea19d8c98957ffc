/* SPDX-License-Identifier: MIT */
/*
 * Forks while another thread is anywhere in an update of a table (kinds.h), or about to begin one
 * (support/fork_at_step.h). The child finds a whole table: it checks every invariant, finds each
 * entry that no update concerned, updates everything, forks, and destroys the table.
 *
 * rseq=0, because restartable sequences cannot be stepped through.
 *
 * ctest: cost 15
 * ctest: needs steps
 */
#define _GNU_SOURCE
#include "tables/kinds.h"

#include <limits.h>

#include "heap/cold.h"
#include "support/fork_at_step.h"
#include "support/name_test.h"
#include "support/threads.h"
#include "tables/hash_resize.h"
#include "tables/hash_values.h"

#define ENTRIES    800
#define STEPS_MOST 6000

/* ------------------------------------------------------------------------------------ all kinds */

static void *table;
static struct entry entries[ENTRIES], others[4];
static unsigned count; /* keys before the update: 3 more make the arrays of ids and routes grow */

static void fill(void)
{
    count = tested->flags & TABLE_CHOOSES ? 64 : 253;
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(tested->add(table, i, &entries[i], NULL), 0);
    /* Makes the caches, which takes a new table many steps. */
    assert_int_equal(tested->add(table, *tested->keys - 1, &others[1], NULL), 0);
    assert_int_equal(tested->erase(table, *tested->keys - 1, NULL), 0);
}

static void make(void)
{
    table = table_make(tested, NULL);
    fill();
}

/* Changes the key 0, erases 1, and adds keys that are absent: next to the others, and far from
 * them, which is erased again. */
static void update(void)
{
    const unsigned far = *tested->keys - 1;

    for (unsigned i = 0; i < 3; i++)
        tested->add(table, count + i, &entries[count + i], NULL);
    if (tested->put)
        tested->put(table, 0, &others[0], NULL);
    else
        tested->swap(table, 0, &others[0], NULL);
    tested->add(table, far, &others[1], NULL);
    tested->erase(table, far, NULL);
    tested->erase(table, 1, NULL);
}

/* Of routes, all others are within the first, and hear of the change one after the other. */
static void change_first(void)
{
    tested->swap(table, 0, &others[0], NULL);
}

/* A map counts nodes that the other thread has taken and not used. In a table without locks an
 * object that it had removed may be linked. */
static void check(void)
{
    if (!tested->at && tested->flags & TABLE_DOMAIN)
        tested->check(table);
}

static void visit(unsigned key, struct entry *entry, void *visits)
{
    assert_ptr_equal(tested->get(table, key), entry);
    ++*(unsigned *)visits;
}

static void use(void)
{
    const struct entry *first = tested->get(table, 0);
    unsigned visits = 0;

    check();
    tested->walk(table, visit, &visits);
    assert_int_equal(tested->count(table), visits);
    assert_true(first == &entries[0] || first == &others[0]);
    for (unsigned i = 2; i < count; i++) {
        struct entry *erased = NULL;

        assert_int_equal(tested->erase(table, i, &erased), 0);
        assert_ptr_equal(erased, &entries[i]);
    }
    assert_true(tested->count(table) <= 6);
    for (unsigned i = 2; i < ENTRIES; i++)
        if (!tested->get(table, i))
            assert_int_equal(tested->add(table, i, &entries[i], NULL), 0);
    check();
}

static void ignore(struct entry *entry, void *unused)
{
}

static void destroy(void)
{
    assert_int_equal(tested->destroy(table, ignore, NULL), 0);
}

/* ---------------------------------------------------------------------- resizes of a hash table */

/* Begins a resize that has not moved any group yet. */
static void begin_resize(unsigned from, unsigned to)
{
    table = table_of_domain(NULL, UINT64_C(1) << from, 0, PRUDENCE_HASH_FIXED);
    fill();
    assert_true(hash_resize_begin(hash_of(table), ((struct prudence_hash *)table)->view, to));
    while (!hash_of(table)->from)
        hash_resize_step(hash_of(table));
}

static void make_that_grows(void)
{
    begin_resize(6, 9);
}

static void make_that_shrinks(void)
{
    begin_resize(9, 6);
}

static void resize(void)
{
    prudence_hash_resize(table, 4096);
}

/* -------------------------------------------------------------------------------------- renames */

static struct prudence_hash *from_table, *other_table;
static struct named a, b, fresh[4];

static int rename_to(struct named *old, struct prudence_hash *from, struct prudence_hash *to,
                     uint64_t key, struct named *name)
{
    entry_set(name, key, old->object);
    return prudence_hash_rename(from, &old->name, to, hash_mixed(key), entry_has_key, &key,
                                &name->name);
}

static void make_names(void)
{
    from_table = table_of_domain(NULL, 64, 0, 0);
    other_table = table_of_domain(NULL, 64, 0, 0);
    prudence_hash_add_duplicate(from_table, hash_mixed(1), &entry_set(&a, 1, 10)->name.node);
    prudence_hash_add_duplicate(other_table, hash_mixed(2), &entry_set(&b, 2, 20)->name.node);
}

/* Renames to the other table, and within it. */
static void rename_both(void)
{
    rename_to(&a, from_table, other_table, 3, &fresh[0]);
    rename_to(&b, other_table, other_table, 4, &fresh[1]);
}

/* Checks that each object has one name, counted in that name's table. */
static void use_names(void)
{
    struct named *of_a = find(from_table, hash_mixed(1), 1),
                 *then_a = find(other_table, hash_mixed(3), 3);
    struct named *of_b = find(other_table, hash_mixed(2), 2);
    struct named *then_b = find(other_table, hash_mixed(4), 4);

    assert_true(!of_a != !then_a && !of_b != !then_b);
    assert_int_equal(prudence_hash_count(from_table), of_a ? 1 : 0);
    assert_int_equal(prudence_hash_count(other_table), of_a ? 1 : 2);
    check_chains(from_table);
    check_chains(other_table);
    assert_int_equal(
        rename_to(of_a ? of_a : then_a, of_a ? from_table : other_table, from_table, 5, &fresh[2]),
        0);
    assert_int_equal(rename_to(of_b ? of_b : then_b, other_table, from_table, 6, &fresh[3]), 0);
}

static void destroy_names(void)
{
    remove_all(from_table);
    remove_all(other_table);
    assert_int_equal(prudence_hash_destroy(from_table, NULL, NULL), 0);
    assert_int_equal(prudence_hash_destroy(other_table, NULL, NULL), 0);
}

/* ---------------------------------------------------------------------------------------- forks */

struct path {
    enum table_kind_number kind;
    struct fork_path fork;
};

static unsigned fork_of(const struct path *path, unsigned before, unsigned inside)
{
    tested = &table_kinds[path->kind];
    return fork_path(&path->fork, before, inside);
}

static void tear_down(const struct fork_path *path)
{
    path->tear_down();
}

enum { UPDATES, RENAMES, OF_MAP, BY_HAND };

#define ROW(kind, name, set_up, body, use, end, places)                                            \
    {                                                                                              \
        kind,                                                                                      \
        {                                                                                          \
            name, set_up, NULL, body, NULL, use, end, places                                       \
        }                                                                                          \
    }
static const struct path paths[] = {
    [UPDATES] = ROW(TABLE_HASH, "hash table", make, update, use, destroy, 3),
    [RENAMES] = ROW(TABLE_HASH, "renames", make_names, rename_both, use_names, destroy_names, 40),
    [OF_MAP] = ROW(TABLE_MAP, "map", make, update, use, destroy, 8),
    [BY_HAND] = ROW(TABLE_HASH, "hash table resized by hand", make, resize, use, destroy, 3),
    ROW(TABLE_LOCKFREE_HASH, "hash table without locks", make, update, use, destroy, 12),
    ROW(TABLE_HASH_VALUES, "hash table of values", make, update, use, destroy, 3),
    ROW(TABLE_MAP_VALUES, "map of values", make, update, use, destroy, 3),
    ROW(TABLE_IDS, "ids", make, update, use, destroy, 3),
    ROW(TABLE_ROUTES_IPV6, "routes", make, update, use, destroy, 2),
    ROW(TABLE_ROUTES_IPV6, "routes that hear of a shorter one", make, change_first, use, destroy,
        6),
    ROW(TABLE_HASH, "hash table that grows", make_that_grows, update, use, destroy, 3),
    ROW(TABLE_HASH, "hash table that shrinks", make_that_shrinks, update, use, destroy, 3),
};
#define PATHS (sizeof paths / sizeof paths[0])

/* Fork waits for the other thread's lock, so that thread finishes its update first. */
TEST(a_child_finds_whole_tables)
{
    for (unsigned i = 0; i < PATHS; i++) {
        unsigned all = fork_of(&paths[i], STEPS_MOST, 0);

        for (unsigned place = 0; place < paths[i].fork.places; place++)
            fork_of(&paths[i], all * place / paths[i].fork.places, 0);
    }
}

/* The writer locks a bucket, takes the right to a step, or is counted; it sees the fork, and
 * undoes that. The child is copied in between. */
TEST(a_writer_that_was_about_to_begin)
{
    for (unsigned inside = 1; inside <= 85; inside += 7) {
        fork_of(&paths[UPDATES], 0, inside);
        fork_of(&paths[RENAMES], 0, 4 * inside);
    }
    /* The map counts the writer for six instructions, somewhere among these. */
    for (unsigned inside = 150; inside <= 330; inside += 5)
        fork_of(&paths[OF_MAP], 0, inside);
}

static void use_cache(void)
{
    struct prudence_cache *cache = ((struct prudence_hash_values *)table)->entries.caches[0];

    prudence_cache_free(cache, prudence_cache_alloc(cache));
}

static int destroys_quietly(void *unused)
{
    return tested->destroy(table, ignore, NULL) ? 1 : 42;
}

/* The other thread is anywhere in a call that counts an object of a cold cache (heap/cold.c). */
TEST(a_child_destroys_a_table_whose_caches_are_cold)
{
    struct child_result result;
    unsigned before = 0, steps;

    tested = &table_kinds[TABLE_HASH_VALUES];
    do {
        cold_after = 0;
        table = table_make(tested, NULL);
        assert_int_equal(tested->put(table, 0, &entries[0], NULL), 0);
        cold_after = 256;
        steps =
            fork_at_step(use_cache, use_cache, before, 0, destroys_quietly, NULL, NULL, &result);
        if (!child_exited_with(&result, 42) || *result.output)
            fail_msg("step %u: status %#x: %s", steps, (unsigned)result.status, result.output);
        destroy();
    } while (steps > before++);
    assert_true(before > 50);
}

/* Fork handlers of the program, run in the middle of the fork by the forking thread. */
static bool handlers_update, children_update;

static void update_in_handler(void)
{
    if (handlers_update)
        update();
}

/* Runs in the child before the library's handler, so another thread's lock is still there. */
static void update_in_child(void)
{
    struct table_stats stats;

    if (!children_update)
        return;
    children_update = false;
    alarm(patience(2));
    update();
    tested->stats(table, &stats);
}

TEST(a_child_handler_may_update_when_a_writer_was_about_to_begin)
{
    children_update = true;
    for (unsigned inside = 1; inside <= 300; inside += 3) {
        fork_of(&paths[UPDATES], 0, inside);
        fork_of(&paths[BY_HAND], 0, inside);
    }
    children_update = false;
}

static void handlers_may_update_a(const struct table_kind *of)
{
    pid_t child;

    tested = of;
    make();
    handlers_update = true;
    child = fork();
    if (!child)
        _exit(0);
    handlers_update = false;
    assert_int_equal(status_of(child), 0);
    use();
    destroy();
}

TEST(handlers_may_update)
{
    for (unsigned i = 0; i < TABLE_KINDS; i++)
        handlers_may_update_a(&table_kinds[i]);
}

static void start(void)
{
    /* registered before the library's, so it runs after that, and in the child before that */
    pthread_atfork(update_in_handler, NULL, update_in_child);
    fork_at_step_start();
}

BEFORE_CONSTRUCTORS(start);

int main(void)
{
    if (prudence_option_set("rseq", "0"))
        return 1;
    fork_path_uses = tear_down;
    pin_thread();
    return suite_run(NULL, NULL);
}
