/* SPDX-License-Identifier: MIT */
/*
 * Updates of tables for their tortures. An object belongs to its key; a writer finds its own object
 * until it takes it out; of several threads that put, exchange or erase one key's object, one gets
 * it. A torture defines the operations that are declared here for its table.
 */
#ifndef TESTS_SUPPORT_TORTURE_UPDATES_H
#define TESTS_SUPPORT_TORTURE_UPDATES_H

#include "support/torture_objects.h"
#include "support/updates.h"

static bool strings, readers_stay;
TORTURE_UNUSED static uint64_t won; /* exchanges of contended objects */

/* Makes an object that the table can hold. */
static struct torture_object *make(uint64_t key);

/* Makes the string of this key, and returns its length. */
static size_t text_of(char *text, uint64_t key);

/* Returns what the table has, inside a section. */
static struct torture_object *get(uint64_t key);

/* Returns the object that was there. */
static struct torture_object *put(uint64_t key, struct torture_object *fresh);

/* Returns NULL if the object is in the table now, otherwise the one that is. */
static struct torture_object *insert(uint64_t key, struct torture_object *fresh);

/* Puts `fresh` in the place of `old`, and returns whether `old` was there. */
static bool exchange(uint64_t key, struct torture_object *old, struct torture_object *fresh);

static struct torture_object *erase(uint64_t key);

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

/* Updates a key that no other thread updates, so the old object is known: exactly that one must
 * go. */
static void update_own(struct torture_object **mine, uint64_t key, uint64_t *random)
{
    struct torture_object *old = *mine, *fresh = make(key);

    if (value_now(key) != old)
        torture_violation("key %llu is not in the state that this thread made",
                          (unsigned long long)key);
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

/* Updates a key that all writers want: one thread takes out each object, and retires it; a second
 * one would be a violation. A key with a `lasting` object always has one. */
static void update_contended(uint64_t key, bool lasting, uint64_t *random)
{
    struct torture_object *fresh = make(key), *old;

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

#endif /* TESTS_SUPPORT_TORTURE_UPDATES_H */
