/* SPDX-License-Identifier: MIT */
/* Hash tables, beyond the contract of all tables (test_contract.c): sizes, latent arrays, locks and
 * duplicates. */
#include "support/hash_test.h"
#include "support/stats.h"
#include "support/updates.h"

#define ITEMS 20000

static struct item items[2 * ITEMS];

static void add_items(struct prudence_hash *table, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_mixed(i), &items[i].node);
    }
}

static void remove_items(struct prudence_hash *table, unsigned first, unsigned end)
{
    for (unsigned i = first; i < end; i++)
        assert_int_equal(prudence_hash_remove(table, &items[i].node), 0);
}

static void expect_items(struct prudence_hash *table, unsigned first, unsigned end)
{
    for (unsigned i = 0; i < ITEMS; i++)
        assert_ptr_equal(look_up(table, hash_mixed(i), i),
                         i >= first && i < end ? &items[i] : NULL);
}

TEST(buckets_follow_objects_within_bounds)
{
    struct prudence_hash *table = table_of_domain(NULL, 512, 8192, 0);
    struct prudence_hash_stats stats;

    assert_int_equal(hash_stats_of(table).buckets, 512);
    add_items(table, 0, ITEMS);
    stats = hash_stats_of(table);
    assert_int_equal(stats.objects, ITEMS);
    assert_int_equal(stats.buckets, 8192);
    assert_int_equal(stats.grows, 4);
    expect_items(table, 0, ITEMS);
    remove_items(table, 0, ITEMS);
    add_items(table, 0, 100); /* some updates, until the resize is complete */
    stats = hash_stats_of(table);
    assert_int_equal(stats.buckets, 512);
    assert_true(stats.shrinks >= 2);
    assert_true(stats.bytes_live >= 512 * sizeof(uintptr_t));
    expect_items(table, 0, 100);
    remove_items(table, 0, 100);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

/* Updates by any CPU check the number, once in 64, and take the steps of a resize. */
TEST(few_objects_have_two_buckets_each)
{
    struct prudence_hash *table = prudence_hash_create("test", NULL);

    add_items(table, 0, 1500);
    assert_int_equal(hash_stats_of(table).buckets, 4096);
    add_items(table, 1500, 4000);
    assert_int_equal(hash_stats_of(table).buckets, 4096);
    add_items(table, 4000, 4600);
    assert_int_equal(hash_stats_of(table).buckets, 8192);
    remove_items(table, 600, 4600);
    assert_int_equal(hash_stats_of(table).buckets, 8192);
    remove_items(table, 200, 600);
    add_items(table, 200, 500);
    assert_int_equal(hash_stats_of(table).buckets, 2048);
    expect_items(table, 0, 500);
    remove_items(table, 0, 500);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

/* The updates after a resize share its work, so none waits long, and the resize ends before the
 * next begins. */
TEST(a_resize_ends_before_the_next)
{
    struct prudence_hash *table = prudence_hash_create("test", NULL);
    uint64_t worst = 0;

    for (unsigned i = 0; i < ITEMS; i++) {
        struct prudence_hash_stats stats;

        add_items(table, i, i + 1);
        stats = hash_stats_of(table);
        if (stats.objects > 300 && stats.objects > worst * stats.buckets)
            worst = stats.objects / stats.buckets;
        assert_true(stats.objects < 3 * stats.buckets + 200);
    }
    assert_true(worst <= 2);
    remove_items(table, 0, ITEMS);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

TEST(a_fixed_table_is_resized_by_hand)
{
    struct prudence_hash *table = table_of_domain(NULL, 0, 4096, PRUDENCE_HASH_FIXED);

    assert_int_equal(prudence_hash_resize(NULL, 64), EINVAL);
    add_items(table, 0, 5000);
    assert_int_equal(hash_stats_of(table).buckets, 64);
    assert_int_equal(prudence_hash_resize(table, 1000), 0);
    assert_int_equal(hash_stats_of(table).buckets, 1024);
    assert_int_equal(prudence_hash_resize(table, UINT64_MAX / 4), 0);
    assert_int_equal(hash_stats_of(table).buckets, 4096);
    expect_items(table, 0, 5000);
    assert_int_equal(prudence_hash_resize(table, 0), 0);
    assert_int_equal(hash_stats_of(table).buckets, 64);
    expect_items(table, 0, 5000);
    remove_items(table, 0, 5000);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
}

/* Replaced arrays are latent until the readers of the table's own domain have left. */
TEST(replaced_arrays_are_latent)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash *table = table_of_domain(domain, 512, 0, PRUDENCE_HASH_FIXED);
    uint64_t smaller = round_up(4096, os_page_size), larger = round_up(8192, os_page_size);

    assert_int_equal(hash_stats_of(table).bytes_latent, 0);
    assert_int_equal(prudence_hash_resize(table, 1024), 0);
    assert_int_equal(hash_stats_of(table).bytes_latent, smaller);
    assert_int_equal(prudence_hash_resize(table, 512), 0);
    assert_int_equal(hash_stats_of(table).bytes_latent, smaller + larger);
    all_readers_leave(domain);
    assert_int_equal(hash_stats_of(table).bytes_latent, 0);
    assert_int_equal(prudence_domain_destroy(domain), EBUSY);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* Objects come and go while a reader stays: the table's garbage does not grow with their
 * number. */
TEST(a_reader_that_stays_keeps_little)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash *table = table_of_domain(domain, 0, 0, 0);
    struct prudence_hash_stats stats;

    for (unsigned tide = 0; tide < 10; tide++) {
        add_items(table, 0, ITEMS);
        remove_items(table, 0, ITEMS);
        stats = hash_stats_of(table);
        assert_true(stats.bytes_latent <= 3 * 32768 * sizeof(uintptr_t));
    }
    assert_true(stats.bytes_latent > 0);
    assert_true(stats.grows < 20);
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* An array that never has room below the limit is deferred when its readers have left, not before;
 * until then the table grows no further. */
TEST(an_array_without_room_is_kept)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash *table = table_of_domain(domain, 64, 0, 0);
    const uint64_t overruns = stats_now().latent_overruns;

    assert_int_equal(prudence_option_set("latent_limit", "8K"), 0);
    prudence_read_lock(); /* no deferral may wait here */
    for (unsigned i = 0; i < 2 * ITEMS; i++) {
        add_items(table, i, i + 1);
        assert_true(hash_stats_of(table).bytes_latent <= 8 << 10);
    }
    assert_true(hash_stats_of(table).buckets < 2 * ITEMS);
    assert_int_equal(prudence_hash_resize(table, 1 << 18), EAGAIN);
    check_chains(table);
    for (unsigned i = 0; i < 10; i++) { /* readers leave repeatedly */
        prudence_manual_advance(domain);
        prudence_manual_advance(domain);
        remove_items(table, 0, 10000);
        add_items(table, 0, 10000);
    }
    assert_true(hash_stats_of(table).buckets >= 2 * ITEMS);
    assert_int_equal(stats_now().latent_overruns, overruns);
    check_chains(table);
    prudence_read_unlock();
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    remove_all(table);
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_destroy(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ---------------------------------------------------------------------------------------- locks */

static struct prudence_hash *locked_table;
static unsigned compared;

static bool match_under_lock(const struct prudence_hash_node *node, const void *key)
{
    const uintptr_t *bucket =
        &view_words(locked_table->view)[hash_index(node->hash, view_order(locked_table->view))];

    assert_true(*bucket & HASH_LOCKED);
    for (unsigned other = 0; other < 64; other++)
        if (&view_words(locked_table->view)[other] != bucket)
            assert_false(view_words(locked_table->view)[other] & HASH_LOCKED);
    compared++;
    return item_has_key(node, key);
}

/* An update locks its own bucket only, and only while it searches. */
TEST(an_update_locks_one_bucket)
{
    uint64_t key = 3;

    locked_table = prudence_hash_create("test", NULL);
    add_items(locked_table, 0, 50);
    assert_ptr_equal(
        hash_add_found(locked_table, hash_mixed(3), match_under_lock, &key, &items[60].node),
        &items[3].node);
    items[60].key = 3;
    assert_ptr_equal(
        hash_put_found(locked_table, hash_mixed(3), match_under_lock, &key, &items[60].node),
        &items[3].node);
    assert_int_equal(compared, 2);
    check_chains(locked_table);
    remove_all(locked_table);
    check_chains(locked_table);
    assert_int_equal(prudence_hash_destroy(locked_table, NULL, NULL), 0);
}

/* --------------------------------------------------------------------------------- equal hashes */

static struct prudence_hash *equal;
static bool at_other;

/* Exchanges the duplicates when the reader is at the object of the other key. */
static bool match_and_exchange(const struct prudence_hash_node *node, const void *key)
{
    if (prudence_hash_entry(node, const struct item, node) == &items[1] && !at_other) {
        at_other = true;
        prudence_hash_add_duplicate(equal, 42, &items[2].node);
        assert_int_equal(prudence_hash_remove(equal, &items[0].node), 0);
    }
    return item_has_key(node, key);
}

/* The exception that <prudence/hash.h> names: a duplicate is added before the reader's position,
 * and the one after it removed. */
TEST(duplicates_of_equal_hashes_may_be_missed)
{
    uint64_t key = 7;

    equal = prudence_hash_create("test", NULL);
    items[0].key = items[2].key = key;
    items[1].key = 8;
    prudence_hash_add_duplicate(equal, 42, &items[0].node);
    prudence_hash_add_duplicate(equal, 42, &items[1].node);
    assert_null(prudence_hash_lookup(equal, 42, match_and_exchange, &key));
    assert_true(at_other);
    assert_ptr_equal(look_up(equal, 42, key), &items[2]);
    remove_all(equal);
    assert_int_equal(prudence_hash_destroy(equal, NULL, NULL), 0);
}

SUITE(pin_thread())
