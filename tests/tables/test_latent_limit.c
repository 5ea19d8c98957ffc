/* SPDX-License-Identifier: MIT */
/*
 * A reader stays, and writers storm: they replace objects, and the number of objects rises and
 * falls, so that tables are resized all the time. Garbage stays under latent_limit: deferring an
 * object waits, and a hash table keeps an array that finds no room and stops resizing. When the
 * reader has left, everything continues.
 *
 * The test waits for no time: the reader leaves when no writer can go on, and wait_max is longer
 * than the test.
 */
#include "support/hash_test.h"
#include "support/updates.h"

#include <pthread.h>

#include <prudence/id_table.h>

#include "support/gp_reader.h"

#define WRITERS    3
#define KEYS       2000 /* of each writer: the number rises to this and falls */
#define IDS        600
#define ROUNDS     12
#define LIMIT      ((uint64_t)256 << 10) /* independent of the page size */
#define ARRAY_MOST ((uint64_t)64 << 10)  /* for a table with all keys of all writers */

static struct prudence_hash *table;
static struct prudence_id_table *ids;
static struct prudence_cache *cache;
static uint64_t operations;

static void set_limit(void)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)LIMIT);
    assert_int_equal(prudence_option_set("latent_limit", text), 0);
}

static struct prudence_stats stats(void)
{
    struct prudence_stats now;

    prudence_stats(&now);
    return now;
}

static void replace_key(uint64_t key)
{
    struct item *fresh = prudence_cache_alloc(cache), *old;

    assert_non_null(fresh);
    fresh->key = key;
    prudence_read_lock();
    old = item_of(hash_put_found(table, hash_mixed(key), item_has_key, &key, &fresh->node));
    prudence_read_unlock();
    if (old)
        prudence_cache_free_deferred(cache, old);
    __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
}

static void remove_key(uint64_t key)
{
    struct item *old;

    prudence_read_lock();
    old = look_up(table, hash_mixed(key), key);
    assert_int_equal(prudence_hash_remove(table, &old->node), 0);
    prudence_read_unlock();
    prudence_cache_free_deferred(cache, old);
    __atomic_fetch_add(&operations, 1, __ATOMIC_RELAXED);
}

static void *storm(void *number)
{
    uint64_t first = (uintptr_t)number * KEYS;
    uint32_t id[IDS];

    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 2 * KEYS; i++)
            replace_key(first + i % KEYS);
        for (unsigned i = 0; i < IDS; i++)
            assert_int_equal(prudence_id_table_add(ids, &operations, &id[i]), 0);
        for (unsigned i = 0; i < KEYS; i++)
            remove_key(first + i);
        for (unsigned i = 0; i < IDS; i++)
            assert_ptr_equal(ids_erase_found(ids, id[i]), &operations);
    }
    return NULL;
}

/*
 * Without an overrun, the limit holds to the byte. Only a writer inside a section exceeds it,
 * because it may not wait when it defers an array of the table: it has looked for the array's room,
 * and another thread takes that room before it defers (tables/views.h). No other array is
 * deferred before there is room again, so at most one array exceeds the limit, however often that
 * happens.
 */
static void is_under_limit(const struct prudence_stats *before, const struct prudence_stats *now)
{
    const bool passed = now->latent_overruns > before->latent_overruns;

    assert_true(now->bytes_latent_peak <= LIMIT + (passed ? ARRAY_MOST : 0));
}

/* Waits until no writer makes progress and at least one waits. (Not all need count as throttled:
 * others may wait to grow a cache.) */
static void until_all_wait(const struct prudence_stats *begun)
{
    struct prudence_stats now;
    uint64_t before;

    do {
        before = __atomic_load_n(&operations, __ATOMIC_RELAXED);
        pause_ms(100);
        now = stats();
        is_under_limit(begun, &now);
        /* no deferred object becomes safe */
        assert_true(now.latent_overruns <= begun->latent_overruns + 1);
    } while (now.throttle_waits == begun->throttle_waits ||
             __atomic_load_n(&operations, __ATOMIC_RELAXED) != before);
}

static struct item items[40000];

/* Adds more than the writers ever have in the table, then removes all: neither number fits the
 * array left by the storm. */
static void resizes_go_on(const struct prudence_hash_stats *stood)
{
    assert_int_equal(prudence_cache_barrier(cache), 0);
    for (unsigned i = 0; i < 40000; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(table, hash_mixed(i), &items[i].node);
    }
    assert_true(hash_stats_of(table).grows > stood->grows);
    remove_all(table);
    assert_true(hash_stats_of(table).shrinks > stood->shrinks);
}

TEST(garbage_stays_under_its_limit)
{
    struct prudence_stats before, after;
    struct held_reader reader = {.domain = NULL};
    struct prudence_hash_stats stood;
    pthread_t writers[WRITERS];

    before = stats();
    held_reader_start(&reader);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, storm, (void *)i), 0);
    until_all_wait(&before);
    assert_true(stats().bytes_latent > LIMIT / 2);
    stood = hash_stats_of(table);
    held_reader_end(&reader);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    after = stats();
    is_under_limit(&before, &after);
    assert_int_equal(after.throttle_expiries, before.throttle_expiries);
    assert_int_equal(prudence_hash_count(table), 0);
    resizes_go_on(&stood);
    check_chains(table);
}

/* An array that never has room is deferred when its readers have left, not before; until then
 * the table grows no further. */
TEST(an_array_without_room_is_kept)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_hash *manual = table_of_domain(domain, 64, 0, 0);
    struct prudence_stats before = stats();
    struct prudence_hash_stats kept;

    prudence_option_set("latent_limit", "8K");
    prudence_read_lock(); /* no deferral may wait here */
    for (unsigned i = 0; i < 40000; i++) {
        items[i].key = i;
        prudence_hash_add_duplicate(manual, hash_mixed(i), &items[i].node);
        assert_true(hash_stats_of(manual).bytes_latent <= 8 << 10);
    }
    kept = hash_stats_of(manual);
    assert_true(kept.buckets < 40000);
    assert_int_equal(prudence_hash_resize(manual, 1 << 18), EAGAIN);
    check_chains(manual);
    for (unsigned i = 0; i < 10; i++) { /* readers leave repeatedly */
        prudence_manual_advance(domain);
        prudence_manual_advance(domain);
        for (unsigned k = 0; k < 10000; k++)
            assert_int_equal(prudence_hash_remove(manual, &items[k].node), 0);
        for (unsigned k = 0; k < 10000; k++)
            prudence_hash_add_duplicate(manual, hash_mixed(k), &items[k].node);
    }
    assert_true(hash_stats_of(manual).buckets >= 40000);
    assert_int_equal(stats().latent_overruns, before.latent_overruns);
    check_chains(manual);
    prudence_read_unlock();
    set_limit();
    remove_all(manual);
    all_readers_leave(domain);
    assert_int_equal(prudence_hash_destroy(manual, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

static int set_up(void **state)
{
    set_limit();
    prudence_option_set("wait_max", "600s");
    table = prudence_hash_create("test", NULL);
    ids = prudence_id_table_create("test", NULL);
    cache = prudence_cache_create("test", sizeof(struct item), NULL);
    return !table || !ids || !cache;
}

static int tear_down(void **state)
{
    return prudence_hash_destroy(table, NULL, NULL) || prudence_id_table_destroy(ids, NULL, NULL) ||
           prudence_cache_destroy(cache);
}

int main(void)
{
    return suite_run(set_up, tear_down);
}
