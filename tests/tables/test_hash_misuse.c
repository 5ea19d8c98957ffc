/* SPDX-License-Identifier: MIT */
/*
 * Adding a node that is already in the table, or one at an invalid address, stops the process at
 * once and names the caller's place; otherwise the next operation on the chain would never end. The
 * former is detected with check=1 only, and so is a node that is in another table. Correct uses
 * pass: a node that was removed, one that was never added and whose memory holds anything, or one
 * that was removed from another table.
 *
 * ctest: not-with sanitizers (UBSan stops at the misaligned node before the library does)
 */

#include <pthread.h>
#include <string.h>

#include <prudence/hash.h>
#include <prudence/hash_rename.h>
#include <prudence/lockfree_hash.h>
#include <prudence/rcu.h>

#include "support/gp_child.h"
#include "support/suite.h"

#define HASHES 3

static bool any(const struct prudence_hash_node *node, const void *key)
{
    (void)node, (void)key;
    return true;
}

static bool none(const struct prudence_hash_node *node, const void *key)
{
    (void)node, (void)key;
    return false;
}

static struct prudence_hash *table;
static struct prudence_lockfree_hash *lockfree;
static struct prudence_hash_name others[2]; /* in the table */

/* Every way to put a node into a table. */
static void add(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_hash_add_duplicate(table, hash, node);
}

static void add_unique(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_hash_add(table, hash, none, NULL, node, NULL);
}

static void add_replace(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_hash_put(table, hash, any, NULL, node, NULL);
}

static void replace(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_hash_replace(table, &others[0].node, node);
}

static struct prudence_hash_name *name_of(struct prudence_hash_node *node)
{
    return prudence_hash_entry(node, struct prudence_hash_name, node);
}

static void rename_to(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_hash_rename(table, &others[0], table, hash, none, NULL, name_of(node));
}

static void exchange(uint64_t hash, struct prudence_hash_node *node)
{
    struct prudence_hash_name fresh;

    prudence_hash_exchange(table, &others[0], &fresh, table, &others[1], name_of(node));
}

static void lockfree_add(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_lockfree_hash_add_duplicate(lockfree, hash, node);
}

static void lockfree_add_unique(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_lockfree_hash_add(lockfree, hash, none, NULL, node, NULL);
}

static void lockfree_add_replace(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_lockfree_hash_put(lockfree, hash, none, NULL, node, NULL);
}

static void lockfree_replace(uint64_t hash, struct prudence_hash_node *node)
{
    prudence_lockfree_hash_replace(lockfree, &others[0].node, node);
}

static const struct way {
    const char *name;
    void (*put)(uint64_t hash, struct prudence_hash_node *node);
    bool lockfree;
} ways[] = {
    {"prudence_hash_add_duplicate", add, false},
    {"prudence_hash_add", add_unique, false},
    {"prudence_hash_put", add_replace, false},
    {"prudence_hash_replace", replace, false},
    {"prudence_hash_rename", rename_to, false},
    {"prudence_hash_exchange", exchange, false},
    {"prudence_lockfree_hash_add_duplicate", lockfree_add, true},
    {"prudence_lockfree_hash_add", lockfree_add_unique, true},
    {"prudence_lockfree_hash_put", lockfree_add_replace, true},
    {"prudence_lockfree_hash_replace", lockfree_replace, true},
};

/* Makes a table that holds `node`, if not NULL, and two others; enters a section, which stays
 * open. */
static void begin(const struct way *way, struct prudence_hash_node *node)
{
    table = prudence_hash_create("misused", NULL);
    lockfree = prudence_lockfree_hash_create("misused", NULL);
    if (!table || !lockfree)
        abort();
    prudence_read_lock();
    for (unsigned i = 0; i < 2; i++) {
        if (way->lockfree)
            prudence_lockfree_hash_add_duplicate(lockfree, 10 + i, &others[i].node);
        else
            prudence_hash_add_duplicate(table, 10 + i, &others[i].node);
    }
    if (node && way->lockfree)
        prudence_lockfree_hash_add_duplicate(lockfree, 1, node);
    else if (node)
        prudence_hash_add_duplicate(table, 1, node);
}

static struct {
    const struct way *way;
    uint64_t hash;
} now;

static int puts_it_twice(void *unused)
{
    struct prudence_hash_name name;

    prudence_option_set("check", "1");
    begin(now.way, &name.node);
    now.way->put(now.hash, &name.node);
    return 42;
}

/* Puts the node that another table has into the table, and the other way round. */
static int puts_it_into_two_tables(void *unused)
{
    struct prudence_hash_attr attr = {.size = sizeof attr, .buckets = 1000};
    struct prudence_hash *other;
    struct prudence_hash_name name;

    prudence_option_set("check", "1");
    other = prudence_hash_create("other", &attr);
    begin(now.way, NULL);
    memset(&name, 0, sizeof name);
    prudence_hash_add_duplicate(other, 5, &name.node);
    now.way->put(now.hash, &name.node);
    return 42;
}

static void is_stopped(int (*body)(void *), const char *why)
{
    struct child_result result;
    char said[128];

    child_run(body, NULL, &result);
    snprintf(said, sizeof said, "%s, called from 0x", now.way->name);
    if (!child_died(&result) || !child_said(&result, said) || !child_said(&result, why))
        fail_msg("%s: status %#x, '%s'", now.way->name, (unsigned)result.status, result.output);
}

/* With the hash that the node has, and with another one. */
TEST(a_node_that_is_in_the_table_is_reported)
{
    for (now.way = ways; now.way < ways + sizeof ways / sizeof *ways; now.way++)
        for (now.hash = 1; now.hash <= HASHES; now.hash++)
            is_stopped(puts_it_twice, "is in the table already");
}

/* The table without locks, which signal handlers may update, does not look at others. */
TEST(a_node_that_another_table_has_is_reported)
{
    for (now.way = ways; now.way < ways + sizeof ways / sizeof *ways; now.way++)
        for (now.hash = 1; !now.way->lockfree && now.hash <= 5; now.hash += 4)
            is_stopped(puts_it_into_two_tables, "is in table 'other': remove it there first");
}

/* Threads that add and remove, resize, make and destroy tables while nodes are looked for there. */
#define THREADS 3
#define ROUNDS  300

static bool is_node(const struct prudence_hash_node *node, const void *key)
{
    return node == key;
}

static void forget(struct prudence_hash_node *node, void *count)
{
    memset(node, 0xff, sizeof *node);
    ++*(unsigned *)count;
}

static void *make_and_destroy(void *unused)
{
    struct prudence_hash_node nodes[200];
    unsigned count = 0;

    for (unsigned round = 0; round < ROUNDS / 10; round++) {
        struct prudence_hash *own = prudence_hash_create("own", NULL);

        memset(nodes, 0x5b, sizeof nodes); /* looks like a link */
        for (unsigned i = 0; i < 200; i++) {
            prudence_read_lock();
            prudence_hash_add(own, i, is_node, &nodes[i], &nodes[i], NULL);
            prudence_read_unlock();
        }
        prudence_read_lock();
        prudence_hash_remove(own, &nodes[7]);
        prudence_read_unlock();
        prudence_synchronize();
        prudence_read_lock();
        prudence_hash_add_duplicate(table, 7, &nodes[7]);
        prudence_hash_remove(table, &nodes[7]);
        prudence_read_unlock();
        prudence_synchronize();
        if (prudence_hash_destroy(own, forget, &count))
            abort();
    }
    return count == ROUNDS / 10 * 199 ? unused : NULL;
}

static int makes_and_destroys(void *unused)
{
    pthread_t threads[THREADS];
    void *result;

    prudence_option_set("check", "1");
    table = prudence_hash_create("shared", NULL);
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, make_and_destroy, &table))
            return 1;
    for (unsigned i = 0; i < THREADS; i++)
        if (pthread_join(threads[i], &result) || !result)
            return 2;
    return prudence_hash_destroy(table, NULL, NULL) ? 3 : 42;
}

TEST(tables_that_come_and_go_are_searched)
{
    assert_child(makes_and_destroys, NULL);
}

/* Ends an object, which `dispose` may do at once, and adds another one to another table. */
static void end_and_add(struct prudence_hash_node *node, void *other)
{
    struct prudence_hash_node *fresh = other;

    *fresh = *node;
    *node = (struct prudence_hash_node){.next = PRUDENCE_HASH_NODE}; /* leads to NULL */
    prudence_read_lock();
    prudence_hash_add_duplicate(table, 9, fresh);
    prudence_hash_remove(table, fresh);
    prudence_read_unlock();
}

static int adds_while_it_disposes(void *unused)
{
    struct prudence_hash_node node, fresh;
    struct prudence_hash *own;

    prudence_option_set("check", "1");
    table = prudence_hash_create("shared", NULL);
    own = prudence_hash_create("own", NULL);
    prudence_read_lock();
    prudence_hash_add_duplicate(own, 9, &node);
    prudence_read_unlock();
    return prudence_hash_destroy(own, end_and_add, &fresh) ? 1 : 42;
}

TEST(objects_that_are_disposed_of_are_not_read)
{
    assert_child(adds_while_it_disposes, NULL);
}

static int puts_it_where_it_must_not_be(void *unused)
{
    static char room[sizeof(struct prudence_hash_name) + 8] __attribute__((aligned(8)));
    /* Goes through a number, because the compiler would see the misalignment. */
    volatile uintptr_t place = (uintptr_t)room + now.hash;

    begin(now.way, NULL);
    now.way->put(1, (struct prudence_hash_node *)place);
    return 42;
}

TEST(a_misaligned_node_is_reported)
{
    for (now.way = ways; now.way < ways + sizeof ways / sizeof *ways; now.way++)
        for (now.hash = 1; now.hash < 8; now.hash *= 2)
            is_stopped(puts_it_where_it_must_not_be, "not aligned to 8 bytes");
}

/* Adds the node, and to another table after it was removed. */
static int does_nothing_wrong(void *unused)
{
    struct prudence_hash_name name;

    prudence_option_set("check", "1");
    begin(now.way, NULL);
    memset(&name, 0x5b, sizeof name);
    now.way->put(1, &name.node);
    if (now.way->lockfree) {
        if (prudence_lockfree_hash_remove(lockfree, &name.node))
            return 1;
        prudence_hash_add_duplicate(table, 1, &name.node);
        return prudence_hash_remove(table, &name.node) ? 2 : 42;
    }
    if (prudence_hash_remove(table, &name.node))
        return 3;
    prudence_hash_add_duplicate(table, 1, &name.node);
    return prudence_hash_remove(table, &name.node) ? 4 : 42;
}

TEST(what_is_right_is_let_pass)
{
    for (now.way = ways; now.way < ways + sizeof ways / sizeof *ways; now.way++)
        assert_child(does_nothing_wrong, NULL);
}

SUITE()
