/* SPDX-License-Identifier: MIT */
/*
 * Updates of tables of values, for their tortures. A value belongs to its key; a writer finds its
 * own value until it takes it out; of several threads that put, exchange or erase one key's value,
 * one gets it. The tables have the same interface under two names, so before including this file a
 * torture defines:
 *
 * #define VALUES_TABLE struct prudence_map_values
 * #define VALUES_CALL(name) prudence_map_values_##name
 * #define VALUES_TEXT  most bytes of a string
 */
#ifndef TESTS_SUPPORT_TORTURE_VALUES_H
#define TESTS_SUPPORT_TORTURE_VALUES_H

#include "support/torture_objects.h"
#include "support/updates.h"

static VALUES_TABLE *table;
static bool strings, readers_stay;
static uint64_t won; /* exchanges of contended values */

/* Makes the string of this key, and returns its length. */
static size_t text_of(char *text, uint64_t key);

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

/* Returns NULL if the object is in the table now. */
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

/* Looks up inside a section. */
static struct torture_object *look_up(uint64_t key)
{
    return object_of_key(get(key), key);
}

/* Returns the address only, because a writer is in no section. */
static struct torture_object *value_now(uint64_t key)
{
    struct torture_object *object;

    prudence_read_lock();
    object = look_up(key);
    prudence_read_unlock();
    return object;
}

/* Updates a key that no other thread updates, so the old value is known: exactly that one must
 * go. */
static void update_own(struct torture_object **mine, uint64_t key, uint64_t *random)
{
    struct torture_object *old = *mine, *fresh = object_make(key);

    TORTURE_CHECK(value_now(key) == old);
    switch (torture_below(random, 4)) {
    case 0:
        TORTURE_CHECK(put(key, fresh) == old);
        break;
    case 1:
        TORTURE_CHECK(insert(key, fresh) == old);
        TORTURE_CHECK(!old || (!exchange(key, fresh, old) && exchange(key, old, fresh)));
        break;
    default:
        TORTURE_CHECK(erase(key) == old);
        object_unmake(fresh);
        fresh = NULL;
    }
    *mine = fresh;
    object_retire(old);
}

/* Updates a key that all writers want: one thread takes out each value, and retires it; a second
 * one would be a violation. A key with a `lasting` value always has one. */
static void update_contended(uint64_t key, bool lasting, uint64_t *random)
{
    struct torture_object *fresh = object_make(key), *old;

    switch (torture_below(random, lasting ? 2 : 4)) {
    case 0:
        object_retire(put(key, fresh));
        break;
    case 1:
        old = value_now(key);
        if (old ? exchange(key, old, fresh) : !insert(key, fresh)) {
            object_retire(old);
            __atomic_fetch_add(&won, 1, __ATOMIC_RELAXED);
        } else {
            object_unmake(fresh);
        }
        break;
    case 2:
        if (insert(key, fresh))
            object_unmake(fresh);
        break;
    default:
        object_unmake(fresh);
        object_retire(erase(key));
    }
}

#endif /* TESTS_SUPPORT_TORTURE_VALUES_H */
