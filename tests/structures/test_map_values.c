/* SPDX-License-Identifier: MIT */
/*
 * Maps of values: random operations beside a model, for numbers and for strings of each size of
 * entries; refused arguments; statistics, latent bytes and their limit;
 * exchanges by many threads.
 *
 * ctest: not-with thread (all but one case have one thread; torture_map has many)
 */
#include <prudence/map_values.h>

#define VALUES_TABLE      struct prudence_map_values
#define VALUES_CALL(name) prudence_map_values_##name
#include "support/values_model.h"
#include "support/updates.h"

#include <pthread.h>

#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"

static struct prudence_map_values *make_values(unsigned flags, struct prudence_domain *domain)
{
    struct prudence_map_values_attr attr = {.size = sizeof attr, .flags = flags, .domain = domain};
    struct prudence_map_values *map = prudence_map_values_create("test", &attr);

    assert_non_null(map);
    return map;
}

static struct prudence_map_stats values_stats(struct prudence_map_values *map)
{
    struct prudence_map_stats stats;

    assert_int_equal(prudence_map_values_stats(map, &stats), 0);
    return stats;
}

/* ----------------------------------------------------------------------------- beside the model */

static struct test_key key_of(const struct prudence_map_node *node)
{
    const struct prudence_map_bytes *string = (const struct prudence_map_bytes *)node;
    struct test_key key = {.length = 8};

    for (unsigned i = 0; !map_strings && i < 8; i++)
        key.bytes[i] = (uint8_t)(node->key >> (56 - 8 * i));
    if (map_strings) {
        key.length = string->length;
        memcpy(key.bytes, (const void *)(uintptr_t)node->key, key.length);
    }
    return key;
}

/* Checks keys and values, in their order, and the sum of all memory. */
static void check_all(struct prudence_map_values *map)
{
    struct prudence_map_walk walk;
    struct prudence_map_node *node = prudence_map_first(&walk, prudence_map_values_nodes(map));
    uint64_t count = 0;

    for (unsigned i = 0; i < map_key_count; i++) {
        struct test_key key;

        assert_ptr_equal(get(map, i), model[i]);
        if (!model[i])
            continue;
        assert_non_null(node);
        key = key_of(node);
        assert_int_equal(compare_keys(&key, &map_keys[i]), 0);
        assert_ptr_equal(prudence_map_values_value(node), model[i]);
        node = prudence_map_next(&walk);
        count++;
    }
    assert_null(node);
    assert_int_equal(prudence_map_values_count(map), count);
}

static unsigned disposed;

/* Checks that entries come in the order of keys. */
static void dispose(void *value, void *next)
{
    unsigned *index = next;

    while (!model[*index])
        ++*index;
    assert_ptr_equal(value, model[(*index)++]);
    disposed++;
}

static void random_operations(unsigned operations)
{
    static void (*const all[])(struct prudence_map_values * map, unsigned index) = {put, add,
                                                                                    replace, erase};
    struct prudence_domain *domain = prudence_domain_create("test", PRUDENCE_DOMAIN_MEMB, NULL);
    struct prudence_map_values *map =
        make_values(map_strings ? PRUDENCE_MAP_VALUES_BYTES : 0, domain);
    unsigned next = 0, left;

    model = calloc(map_key_count, sizeof model[0]);
    for (unsigned i = 0; i < operations; i++) {
        unsigned index = below(map_key_count);

        give(index);
        all[below(i % 4000 < 3000 ? 3 : 4)](map, index);
        if (i % 2000 == 0)
            check_all(map);
    }
    check_all(map);
    left = (unsigned)prudence_map_values_count(map);
    assert_true(left > 0);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), EBUSY);
    disposed = 0;
    assert_int_equal(prudence_map_values_destroy(map, dispose, &next), 0);
    assert_int_equal(disposed, left);
    assert_int_equal(prudence_domain_destroy(domain), 0); /* no cache is left, so no entry is */
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

#define LONG 100000

/* Uses each length at which another size of entries begins, and some that need many pages. Live
 * bytes equal the requested ones. */
TEST(strings_of_any_length)
{
    static const size_t lengths[] = {0,   8,   9,   40,   41,   104,  105, 232,
                                     233, 488, 489, 4072, 4073, 8168, LONG};
    static const size_t bytes[] = {32,  32,  64,   64,   128,  128,  256,   256,
                                   512, 512, 4096, 4096, 8192, 8192, 102400};
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_values *map = make_values(PRUDENCE_MAP_VALUES_BYTES, domain);
    uint64_t live = values_stats(map).bytes_live;
    char *text = malloc(LONG);

    for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        void *old = NULL;

        memset(text, 'a' + (int)i, LONG);
        assert_int_equal(prudence_map_values_add_bytes(map, text, lengths[i], &values[i], NULL), 0);
        assert_int_equal(values_stats(map).bytes_live, live + bytes[i]);
        assert_int_equal(prudence_map_values_add_bytes(map, text, lengths[i], &values[0], &old),
                         EEXIST);
        assert_int_equal(
            prudence_map_values_replace_bytes(map, text, lengths[i], &values[9999], text), ENOENT);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(prudence_map_values_put_bytes(map, text, lengths[i], &values[i + 1], &old),
                         0);
        assert_ptr_equal(old, &values[i]);
        assert_int_equal(values_stats(map).bytes_live, live + bytes[i]);
        assert_true(values_stats(map).bytes_latent >= bytes[i]);
        assert_ptr_equal(prudence_map_values_get_bytes(map, text, lengths[i]), &values[i + 1]);
        assert_ptr_equal(map_values_erase_bytes_found(map, text, lengths[i]), &values[i + 1]);
        assert_int_equal(values_stats(map).bytes_live, live);
        all_readers_leave(domain);
        assert_int_equal(values_stats(map).bytes_latent, 0);
    }
    free(text);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* ------------------------------------------------------------------------------------ arguments */

TEST(wrong_arguments_are_refused)
{
    struct prudence_map_values *map = make_values(0, NULL),
                               *names = make_values(PRUDENCE_MAP_VALUES_BYTES, NULL);
    void *value = values, *old = NULL;

    assert_int_equal(prudence_map_values_put(NULL, 1, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_put(map, 1, NULL, &old), EINVAL);
    assert_int_equal(prudence_map_values_add(NULL, 1, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_add(map, 1, NULL, &old), EINVAL);
    assert_int_equal(prudence_map_values_replace(NULL, 1, value, value), EINVAL);
    assert_int_equal(prudence_map_values_replace(map, 1, NULL, value), EINVAL);
    assert_int_equal(prudence_map_values_replace(map, 1, value, NULL), EINVAL);
    assert_int_equal(prudence_map_values_erase(NULL, 1, &old), EINVAL);
    assert_null(prudence_map_values_create("", NULL));
    assert_int_equal(prudence_map_values_destroy(NULL, NULL, NULL), EINVAL);
    assert_int_equal(prudence_map_values_stats(NULL, (struct prudence_map_stats *)NULL), EINVAL);
    /* Keys of the other kind, and strings without an address. */
    assert_int_equal(prudence_map_values_put_bytes(map, "12345678", 8, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_put_bytes(map, NULL, 8, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_put(names, 1, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_put_bytes(names, NULL, 1, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_add(names, 1, value, &old), EINVAL);
    assert_int_equal(prudence_map_values_replace(names, 1, value, value), EINVAL);
    assert_int_equal(prudence_map_values_erase(names, 1, &old), EINVAL);
    assert_int_equal(prudence_map_values_erase_bytes(names, NULL, 8, &old), EINVAL);
    assert_null(old);
    assert_int_equal(prudence_map_values_put_bytes(names, NULL, 0, value, &old),
                     0); /* the empty string */
    assert_ptr_equal(map_values_erase_bytes_found(names, "", 0), value);
    assert_int_equal(prudence_map_values_put_bytes(names, "", SIZE_MAX, value, &old), ENOMEM);
    assert_null(old);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_map_values_destroy(names, NULL, NULL), 0);
}

/* --------------------------------------------------------------------------------------- memory */

/* A reader that has found a value keeps its entry: the entry is not written or reused until the
 * reader has left. */
TEST(an_entry_stays_for_its_readers)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_values *map = make_values(0, domain);
    const struct prudence_map_node *replaced, *erased;
    uint64_t live = values_stats(map).bytes_live;

    assert_int_equal(prudence_map_values_put(map, 1, &values[1], NULL), 0);
    replaced = prudence_map_lookup(prudence_map_values_nodes(map), 1);
    assert_int_equal(values_stats(map).bytes_live, live + 16);
    assert_int_equal(prudence_map_values_replace(map, 1, &values[1], &values[2]), 0);
    erased = prudence_map_lookup(prudence_map_values_nodes(map), 1);
    assert_ptr_equal(map_values_erase_found(map, 1), &values[2]);
    assert_int_equal(values_stats(map).bytes_live, live);
    assert_true(values_stats(map).bytes_latent >= 32);
    for (unsigned i = 2; i < 1000; i++)
        assert_int_equal(prudence_map_values_put(map, i, &values[9], NULL), 0);
    assert_ptr_equal(prudence_map_values_value(replaced), &values[1]);
    assert_ptr_equal(prudence_map_values_value(erased), &values[2]);
    for (unsigned i = 2; i < 1000; i++)
        assert_ptr_equal(map_values_erase_found(map, i), &values[9]);
    all_readers_leave(domain);
    assert_int_equal(values_stats(map).bytes_latent, 0);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

#define LIMIT ((size_t)1 << 20)

/* A reader stays for ever, and values are replaced until an update has waited for it in vain. */
TEST(a_storm_beside_a_reader_stays_below_the_limit)
{
    struct prudence_domain *domain = manual_domain();
    struct prudence_map_values *map = make_values(PRUDENCE_MAP_VALUES_BYTES, domain);
    uint64_t before = load_relaxed(&wait_counts.expiries), most = 0;
    char text[1000] = {0};

    assert_int_equal(prudence_option_set("latent_limit", "1M"), 0);
    for (unsigned i = 0; load_relaxed(&wait_counts.expiries) == before; i++) {
        most = max_size(most, values_stats(map).bytes_latent);
        assert_true(most <= LIMIT && i < 100000);
        assert_int_equal(
            prudence_map_values_put_bytes(map, text, i % 50 ? i % 300 : sizeof text, values, NULL),
            0);
    }
    assert_true(most > LIMIT / 2);
    assert_int_equal(prudence_option_set("latent_limit", "0"), 0);
    for (unsigned i = 0; i < 300; i++)
        prudence_map_values_erase_bytes(map, text, i, NULL);
    prudence_map_values_erase_bytes(map, text, sizeof text, NULL);
    all_readers_leave(domain);
    assert_int_equal(prudence_map_values_destroy(map, NULL, NULL), 0);
    assert_int_equal(prudence_domain_destroy(domain), 0);
}

/* -------------------------------------------------------------------------------------- threads */

#define THREADS 4
#define ROUNDS  2000

static struct prudence_map_values *shared;

/* Adds one to the value, which is a number, or inserts the first one. With `erases`, erases the
 * value and returns it. */
static uint64_t count_up(bool erases)
{
    for (;;) {
        void *value = NULL;

        if (erases)
            return (uintptr_t)map_values_erase_bytes_found(shared, "counter", 7);
        if (!prudence_map_values_add_bytes(shared, "counter", 7, (void *)1, &value))
            return 0;
        if (!prudence_map_values_replace_bytes(shared, "counter", 7, value,
                                               (void *)((uintptr_t)value + 1)))
            return 0;
    }
}

static void *count_all(void *sum)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        count_up(false);
        if (i % 10 == 0)
            *(uint64_t *)sum += count_up(true);
    }
    return NULL;
}

TEST(no_count_is_lost)
{
    uint64_t sums[THREADS] = {0}, all = 0;
    pthread_t threads[THREADS];

    shared = make_values(PRUDENCE_MAP_VALUES_BYTES, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_all, &sums[i]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += sums[i];
    }
    all += count_up(true);
    assert_int_equal(all, THREADS * ROUNDS);
    assert_int_equal(prudence_map_values_destroy(shared, NULL, NULL), 0);
}

SUITE()
