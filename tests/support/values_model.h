/* SPDX-License-Identifier: MIT */
/*
 * Random operations on a table of values, each beside a model: an array with the value of each key
 * (map_test.h). The tables have the same interface under two names, so before including this file a
 * test defines the type and the function names:
 *
 * #define VALUES_TABLE struct prudence_map_values
 * #define VALUES_CALL(name) prudence_map_values_##name
 *
 * The caller's bytes are overwritten after a call has returned, so the table must have copied them.
 */
#ifndef TESTS_SUPPORT_VALUES_MODEL_H
#define TESTS_SUPPORT_VALUES_MODEL_H

#include "support/map_test.h"

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

#endif /* TESTS_SUPPORT_VALUES_MODEL_H */
