/* SPDX-License-Identifier: MIT */
/*
 * The cases that tables of values share: random operations compared with a model, which is an array
 * with the value of each key (map_test.h); strings of any length; refused arguments; the limit of
 * latent memory; domains of all kinds; a child; exchanges by many threads. The tables have the same
 * interface under two names, so before including this file a test defines:
 *
 * #define VALUES_TABLE struct prudence_map_values
 * #define VALUES_CALL(name) prudence_map_values_##name
 * #define VALUES_BYTES the flag of tables with strings
 * #define VALUES_ATTR and VALUES_STATS the structures of attributes and statistics
 * #define VALUES_GREW(stats) whether these statistics show that the table had to grow
 * #define VALUES_SORTED whether a table has an order, in which it is disposed of
 * #define VALUES_PUT_DEFERS whether a put or an exchange replaces the entry
 * #define VALUES_ROUNDS rounds of each thread that counts
 * static const size_t values_sizes[][2] = {{length of a string, live bytes of its entry}, ...};
 *
 * The caller's bytes are overwritten after a call has returned, so the table must have copied them.
 */
#ifndef TESTS_SUPPORT_VALUES_TEST_H
#define TESTS_SUPPORT_VALUES_TEST_H

#include "support/map_test.h"
#include "support/threads.h"
#include "support/updates.h"

#include <unistd.h>

#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

static char values[10000]; /* values are addresses in this array */
static void **model;       /* by the index of the key; NULL: absent */
static uint64_t random_state;

static unsigned below(unsigned bound)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((random_state >> 33) % bound);
}

static void *some_value(void)
{
    return &values[below(sizeof values)];
}

static uint8_t given[MAP_TEST_LONG];
static size_t given_length;

static void give(unsigned index)
{
    given_length = map_keys[index].length;
    memcpy(given, map_keys[index].bytes, given_length);
}

static void *get(const VALUES_TABLE *table, unsigned index)
{
    give(index);
    return map_strings ? VALUES_CALL(get_bytes)(table, given, given_length)
                       : VALUES_CALL(get)(table, number_of(index));
}

static void put(VALUES_TABLE *table, unsigned index)
{
    void *value = some_value(), *old = &old;
    bool tells = below(2);
    int error = map_strings
                    ? VALUES_CALL(put_bytes)(table, given, given_length, value, tells ? &old : NULL)
                    : VALUES_CALL(put)(table, number_of(index), value, tells ? &old : NULL);

    assert_int_equal(error, 0);
    assert_true(!tells || old == model[index]);
    model[index] = value;
}

static void add(VALUES_TABLE *table, unsigned index)
{
    void *value = some_value(), *there = &there;
    int error = map_strings ? VALUES_CALL(add_bytes)(table, given, given_length, value, &there)
                            : VALUES_CALL(add)(table, number_of(index), value, &there);

    assert_int_equal(error, model[index] ? EEXIST : 0);
    assert_ptr_equal(there, model[index]);
    if (!error)
        model[index] = value;
}

static void replace(VALUES_TABLE *table, unsigned index)
{
    void *fresh = some_value(), *old = below(3) && model[index] ? model[index] : some_value();
    int error = map_strings ? VALUES_CALL(replace_bytes)(table, given, given_length, old, fresh)
                            : VALUES_CALL(replace)(table, number_of(index), old, fresh);

    assert_int_equal(error, old == model[index] ? 0 : ENOENT);
    if (!error)
        model[index] = fresh;
}

static void erase(VALUES_TABLE *table, unsigned index)
{
    void *value = &value;
    bool tells = below(2);
    int error = map_strings
                    ? VALUES_CALL(erase_bytes)(table, given, given_length, tells ? &value : NULL)
                    : VALUES_CALL(erase)(table, number_of(index), tells ? &value : NULL);

    assert_int_equal(error, model[index] ? 0 : ENOENT);
    assert_true(!tells || value == model[index]);
    model[index] = NULL;
}

/* Checks the whole table against the model. */
static void check_all(VALUES_TABLE *table);

static VALUES_TABLE *make_table(unsigned flags, struct prudence_domain *domain)
{
    VALUES_ATTR attr = {.size = sizeof attr, .flags = flags, .domain = domain};
    VALUES_TABLE *table = VALUES_CALL(create)("test", &attr);

    assert_non_null(table);
    return table;
}

static VALUES_STATS values_stats(VALUES_TABLE *table)
{
    VALUES_STATS stats;

    assert_int_equal(VALUES_CALL(stats)(table, &stats), 0);
    return stats;
}

static void *erase_found(VALUES_TABLE *table, uint64_t key)
{
    UPDATES_TAKE(void, VALUES_CALL(erase)(table, key, &found));
}

static void *erase_bytes_found(VALUES_TABLE *table, const void *bytes, size_t length)
{
    UPDATES_TAKE(void, VALUES_CALL(erase_bytes)(table, bytes, length, &found));
}

/* ----------------------------------------------------------------------------- with the model */

static unsigned disposed, next_in_order;
static uintptr_t disposed_sum;
static bool model_is_there;

static void dispose(void *value, void *argument)
{
    assert_ptr_equal(argument, &disposed);
    if (VALUES_SORTED && model_is_there) {
        while (!model[next_in_order])
            next_in_order++;
        assert_ptr_equal(value, model[next_in_order++]);
    }
    disposed_sum += (uintptr_t)value;
    disposed++;
}

static void destroy_with_all(VALUES_TABLE *table)
{
    unsigned left = (unsigned)VALUES_CALL(count)(table);
    uintptr_t sum = 0;

    for (unsigned i = 0; i < map_key_count; i++)
        sum += (uintptr_t)model[i];
    assert_true(left > 0);
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), EBUSY);
    disposed = next_in_order = 0;
    disposed_sum = 0;
    model_is_there = true;
    assert_int_equal(VALUES_CALL(destroy)(table, dispose, &disposed), 0);
    model_is_there = false;
    assert_int_equal(disposed, left);
    assert_true(disposed_sum == sum);
}

static void random_operations(unsigned operations)
{
    static void (*const all[])(VALUES_TABLE * table, unsigned index) = {put, add, replace, erase};
    struct prudence_domain *domain = prudence_domain_create("test", PRUDENCE_DOMAIN_MEMB, NULL);
    VALUES_TABLE *table = make_table(map_strings ? VALUES_BYTES : 0, domain);

    model = calloc(map_key_count, sizeof model[0]);
    for (unsigned i = 0; i < operations; i++) {
        unsigned index = below(map_key_count);

        give(index);
        all[below(i % 4000 < 3000 ? 3 : 4)](table, index);
        if (i % 2000 == 0)
            check_all(table);
    }
    check_all(table);
    assert_true(VALUES_GREW(values_stats(table)));
    destroy_with_all(table);
    assert_int_equal(prudence_domain_destroy(domain), 0); /* no cache remains, so no entry is */
    free(model);
}

TEST(numbers)
{
    make_numbers();
    random_operations(30000);
}

TEST(strings)
{
    make_strings();
    random_operations(30000);
}

/* ------------------------------------------------------------------------ strings of any length */

#define VALUES_LONG 100000

/* Uses each length at which another size of entries begins, and some that need many pages. Live
 * bytes equal the requested ones. */
TEST(strings_of_any_length)
{
    struct prudence_domain *domain = manual_domain();
    VALUES_TABLE *table = make_table(VALUES_BYTES, domain);
    uint64_t live = values_stats(table).bytes_live;
    char *text = malloc(VALUES_LONG);

    for (unsigned i = 0; i < sizeof values_sizes / sizeof values_sizes[0]; i++) {
        const size_t length = values_sizes[i][0], bytes = values_sizes[i][1];
        void *old = NULL;

        memset(text, 'a' + (int)i, VALUES_LONG);
        assert_int_equal(VALUES_CALL(add_bytes)(table, text, length, &values[i], NULL), 0);
        assert_int_equal(values_stats(table).bytes_live, live + bytes);
        assert_int_equal(VALUES_CALL(add_bytes)(table, text, length, &values[0], &old), EEXIST);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(VALUES_CALL(replace_bytes)(table, text, length, &values[9999], text),
                         ENOENT);
        assert_int_equal(VALUES_CALL(put_bytes)(table, text, length, &values[i + 1], &old), 0);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(values_stats(table).bytes_live, live + bytes);
        if (VALUES_PUT_DEFERS)
            assert_true(values_stats(table).bytes_latent >= bytes);
        else
            assert_int_equal(values_stats(table).bytes_latent, 0);
        assert_ptr_equal(VALUES_CALL(get_bytes)(table, text, length), &values[i + 1]);
        assert_ptr_equal(erase_bytes_found(table, text, length), &values[i + 1]);
        assert_int_equal(values_stats(table).bytes_live, live);
        assert_true(values_stats(table).bytes_latent >= bytes);
        all_readers_leave(domain);
        assert_int_equal(values_stats(table).bytes_latent, 0);
    }
    free(text);
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------------------------ arguments */

TEST(wrong_arguments_are_refused)
{
    VALUES_TABLE *table = make_table(0, NULL), *names = make_table(VALUES_BYTES, NULL);
    void *value = values, *old = NULL;
    VALUES_STATS stats;

    assert_null(VALUES_CALL(create)("", NULL));
    assert_int_equal(VALUES_CALL(put)(NULL, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(put)(table, 1, NULL, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add)(NULL, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add)(table, 1, NULL, &old), EINVAL);
    assert_int_equal(VALUES_CALL(replace)(NULL, 1, value, value), EINVAL);
    assert_int_equal(VALUES_CALL(replace)(table, 1, NULL, value), EINVAL);
    assert_int_equal(VALUES_CALL(replace)(table, 1, value, NULL), EINVAL);
    assert_int_equal(VALUES_CALL(erase)(NULL, 1, &old), EINVAL);
    /* Keys of the other kind, and strings without an address. */
    assert_int_equal(VALUES_CALL(put_bytes)(table, "12345678", 8, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(put_bytes)(table, NULL, 8, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add_bytes)(table, "", 0, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(replace_bytes)(table, "", 0, value, value), EINVAL);
    assert_int_equal(VALUES_CALL(erase_bytes)(table, "", 0, &old), EINVAL);
    assert_null(VALUES_CALL(get_bytes)(table, "", 0));
    assert_int_equal(VALUES_CALL(put)(names, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(put_bytes)(names, NULL, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(add)(names, 1, value, &old), EINVAL);
    assert_int_equal(VALUES_CALL(replace)(names, 1, value, value), EINVAL);
    assert_int_equal(VALUES_CALL(erase)(names, 1, &old), EINVAL);
    assert_null(VALUES_CALL(get)(names, 1));
    assert_int_equal(VALUES_CALL(erase_bytes)(names, NULL, 8, &old), EINVAL);
    assert_null(old);
    /* The empty string may lack an address. */
    assert_int_equal(VALUES_CALL(put_bytes)(names, NULL, 0, value, &old), 0);
    assert_ptr_equal(erase_bytes_found(names, "", 0), value);
    assert_null(old);
    assert_int_equal(VALUES_CALL(stats)(NULL, &stats), EINVAL);
    assert_int_equal(VALUES_CALL(stats)(table, (VALUES_STATS *)NULL), EINVAL);
    assert_int_equal(VALUES_CALL(destroy)(NULL, NULL, NULL), EINVAL);
    assert_int_equal(VALUES_CALL(put)(table, 1, value, NULL), 0);
    prudence_read_lock();
    assert_int_equal(VALUES_CALL(destroy)(table, dispose, &disposed), EDEADLK);
    assert_ptr_equal(VALUES_CALL(get)(table, 1), value);
    prudence_read_unlock();
    assert_int_equal(VALUES_CALL(destroy)(table, dispose, &disposed), 0);
    assert_int_equal(VALUES_CALL(destroy)(names, NULL, NULL), 0);
}

/* ------------------------------------------------------------------------------------ the limit */

#define VALUES_LIMIT ((size_t)1 << 20)

/* A reader stays for ever, and values are replaced and erased until an update has waited for it
 * without success. */
TEST(a_storm_beside_a_reader_stays_below_the_limit)
{
    struct prudence_domain *domain = manual_domain();
    VALUES_TABLE *table = make_table(VALUES_BYTES, domain);
    uint64_t before = load_relaxed(&wait_counts.expiries), most = 0;
    char text[1000] = {0};

    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    for (unsigned i = 0; load_relaxed(&wait_counts.expiries) == before; i++) {
        size_t length = i % 50 ? i % 300 : sizeof text;

        most = max_size(most, values_stats(table).bytes_latent);
        assert_true(most <= VALUES_LIMIT && i < 200000);
        assert_int_equal(VALUES_CALL(put_bytes)(table, text, length, values, NULL), 0);
        if (i % 2)
            assert_ptr_equal(erase_bytes_found(table, text, length), values);
    }
    assert_true(most > VALUES_LIMIT / 2);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    all_readers_leave(domain);
    assert_int_equal(VALUES_CALL(destroy)(table, dispose, &disposed), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------------- domains of all kinds */

static void come_and_go(VALUES_TABLE *table)
{
    for (uint64_t i = 0; i < 500; i++)
        assert_int_equal(VALUES_CALL(put)(table, i, &values[i], NULL), 0);
    for (uint64_t i = 0; i < 500; i++)
        assert_ptr_equal(erase_found(table, i), &values[i]);
}

TEST(updates_in_each_kind_of_domain)
{
    static const enum prudence_domain_kind kinds[] = {PRUDENCE_DOMAIN_MEMB, PRUDENCE_DOMAIN_SRCU,
                                                      PRUDENCE_DOMAIN_QSBR};

    for (unsigned i = 0; i < 3; i++) {
        struct prudence_domain *domain = prudence_domain_create("test", kinds[i], NULL);
        VALUES_TABLE *table = make_table(0, domain);

        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_online(domain);
        come_and_go(table);
        if (kinds[i] == PRUDENCE_DOMAIN_QSBR)
            prudence_qsbr_offline(domain);
        assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
        assert_int_equal(prudence_domain_destroy(domain), 0);
    }
}

/* A set has no sections, so updates run inside a section of a member. */
TEST(updates_in_a_set_of_domains)
{
    struct prudence_domain *members[] = {prudence_default_domain()};
    struct prudence_domain *set = prudence_domain_create_set("test", members, 1);
    VALUES_TABLE *table = make_table(0, set);

    prudence_read_lock();
    come_and_go(table);
    prudence_read_unlock();
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(set), 0);
}

TEST(a_child_goes_on)
{
    VALUES_TABLE *table = make_table(0, NULL);
    pid_t child;

    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(VALUES_CALL(put)(table, i, &values[i], NULL), 0);
    child = fork();
    for (uint64_t i = 0; i < 1000; i++) {
        assert_ptr_equal(VALUES_CALL(get)(table, i), &values[i]);
        assert_ptr_equal(erase_found(table, i), &values[i]);
    }
    come_and_go(table);
    assert_int_equal(VALUES_CALL(destroy)(table, NULL, NULL), 0);
    if (!child)
        _exit(0);
    assert_int_equal(status_of(child), 0);
}

/* -------------------------------------------------------------------------------------- threads */

#define VALUES_THREADS 4

static VALUES_TABLE *shared;

/* Adds one to the value, which is a number, or inserts the first one. With `erases`, erases the
 * value and returns it. */
static uint64_t count_up(bool erases)
{
    for (;;) {
        void *value = NULL;

        if (erases)
            return (uintptr_t)erase_bytes_found(shared, "counter", 7);
        if (!VALUES_CALL(add_bytes)(shared, "counter", 7, (void *)1, &value))
            return 0;
        if (!VALUES_CALL(replace_bytes)(shared, "counter", 7, value,
                                        (void *)((uintptr_t)value + 1)))
            return 0;
    }
}

static void *count_all(void *sum)
{
    for (unsigned i = 0; i < VALUES_ROUNDS; i++) {
        count_up(false);
        if (i % 2)
            *(uint64_t *)sum += count_up(true);
    }
    return NULL;
}

TEST(no_count_is_lost)
{
    struct prudence_domain *domain = prudence_domain_create("test", PRUDENCE_DOMAIN_MEMB, NULL);
    uint64_t sums[VALUES_THREADS] = {0}, all = 0;
    pthread_t threads[VALUES_THREADS];

    shared = make_table(VALUES_BYTES, domain);
    for (unsigned i = 0; i < VALUES_THREADS; i++)
        threads[i] = thread_start(count_all, &sums[i]);
    threads_join(threads, VALUES_THREADS);
    for (unsigned i = 0; i < VALUES_THREADS; i++)
        all += sums[i];
    all += count_up(true);
    assert_int_equal(all, VALUES_THREADS * VALUES_ROUNDS);
    assert_int_equal(VALUES_CALL(destroy)(shared, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0); /* no cache remains, so no entry is */
}

#endif /* TESTS_SUPPORT_VALUES_TEST_H */
