/* SPDX-License-Identifier: MIT */
/*
 * The operations of torture_updates.h for tables of values. These have the same interface under two
 * names, so before including this file a torture defines:
 *
 * #define VALUES_TABLE struct prudence_map_values
 * #define VALUES_CALL(name) prudence_map_values_##name
 * #define VALUES_TEXT  most bytes of a string
 */
#ifndef TESTS_SUPPORT_TORTURE_VALUES_H
#define TESTS_SUPPORT_TORTURE_VALUES_H

#include "support/torture_updates.h"

static VALUES_TABLE *table;

static struct torture_object *make(uint64_t key)
{
    return object_make(key);
}

static struct torture_object *get(uint64_t key)
{
    char text[VALUES_TEXT];

    return strings ? VALUES_CALL(get_bytes)(table, text, text_of(text, key))
                   : VALUES_CALL(get)(table, key);
}

static struct torture_object *put(uint64_t key, struct torture_object *fresh)
{
    char text[VALUES_TEXT];
    void *old = updates_unset();

    TORTURE_CHECK((strings ? VALUES_CALL(put_bytes)(table, text, text_of(text, key), fresh, &old)
                           : VALUES_CALL(put)(table, key, fresh, &old)) == 0);
    return old;
}

static struct torture_object *insert(uint64_t key, struct torture_object *fresh)
{
    char text[VALUES_TEXT];
    void *there = updates_unset();
    int error = strings ? VALUES_CALL(add_bytes)(table, text, text_of(text, key), fresh, &there)
                        : VALUES_CALL(add)(table, key, fresh, &there);

    TORTURE_CHECK(error == (there ? EEXIST : 0));
    return there;
}

static bool exchange(uint64_t key, struct torture_object *old, struct torture_object *fresh)
{
    char text[VALUES_TEXT];
    int error = strings ? VALUES_CALL(replace_bytes)(table, text, text_of(text, key), old, fresh)
                        : VALUES_CALL(replace)(table, key, old, fresh);

    TORTURE_CHECK(error == 0 || error == ENOENT);
    return !error;
}

static struct torture_object *erase(uint64_t key)
{
    char text[VALUES_TEXT];
    void *old = updates_unset();
    int error = strings ? VALUES_CALL(erase_bytes)(table, text, text_of(text, key), &old)
                        : VALUES_CALL(erase)(table, key, &old);

    TORTURE_CHECK(error == (old ? 0 : ENOENT));
    return old;
}

#endif /* TESTS_SUPPORT_TORTURE_VALUES_H */
