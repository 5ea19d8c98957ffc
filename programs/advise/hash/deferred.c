/* SPDX-License-Identifier: MIT */
/*
 * Mechanisms whose searches take no lock: rcu, which is the thesis' table with Prudence's read
 * sections and deferred frees, where updates take the bucket's lock; and prudence, the same load on
 * <prudence/hash.h>.
 */
#include <stdlib.h>

#include <prudence/hash.h>
#include <prudence/poll.h>
#include <prudence/rcu.h>

#include "loops.h"
#include "operations.h"

/* A thread's record of the grace periods it drives (hash_load.drive_each). */
struct driver {
    uint64_t next; /* value of self->done for the next one */
    bool updated;
} __attribute__((aligned(APART)));

static struct driver drivers[CREW_MOST];

/* Drives a grace period if due. The library drives grace periods by itself; this is for loads with
 * a given number of operations per grace period (--lambda). */
INLINED void maybe_drive(const struct crew_member *self, struct driver *driver)
{
    if (!hash_load.drive_each || self->done < driver->next || !driver->updated)
        return;
    prudence_gp_start_poll_expedited();
    driver->next = self->done + hash_load.drive_each;
    driver->updated = false;
}

static struct element *new_element(void)
{
    return prudence_cache_alloc(hash_cache);
}

/* ------------------------------------------------------------------ the thesis' table under RCU */

INLINED void rcu_look_up(struct crew_member *self, uint64_t key, bool checked)
{
    prudence_read_lock();
    search(self, bucket_of(key), key, checked);
    prudence_read_unlock();
    self->done++;
}

INLINED void rcu_remove_and_add(struct crew_member *self, uint64_t key, bool checked)
{
    struct bucket *bucket = bucket_of(key);
    struct element *element;

    lock_bucket(self, bucket, checked);
    element = take_out(self, bucket, key, checked);
    unlock_bucket(self, bucket, checked);
    self->done++;
    if (!element)
        return;
    prudence_cache_free_deferred(hash_cache, element);
    element = new_element();
    if (!element)
        hash_fault("no memory for an element");
    fill_in(self, element, key, checked);
    lock_bucket(self, bucket, checked);
    prudence_list_add_rcu(&element->link, &bucket->chain);
    unlock_bucket(self, bucket, checked);
    self->done++;
}

void rcu_prepare(void)
{
    hash_fill(new_element);
}

/* ---------------------------------------------------------------------------- <prudence/hash.h> */

struct object {
    struct prudence_hash_node node;
    uint64_t key, value;
    unsigned state; /* as in struct element */
};

static struct prudence_hash *table;
_Static_assert(sizeof(struct object) <= sizeof(struct element),
               "hash_cache has objects of that size");

static inline bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct object, node)->key == *(const uint64_t *)key;
}

static inline void check_object(const struct object *object, uint64_t key)
{
    if (__atomic_load_n(&object->state, __ATOMIC_RELAXED) == ELEMENT_NEW || object->key != key ||
        object->value != hash_value_of(key))
        hash_fault("a search is at an object that is used for something else");
}

/* Returns the object, or NULL if the key is absent. Call inside a section. The table spreads small
 * numbers by itself. */
INLINED struct object *find_object(uint64_t key)
{
    struct prudence_hash_node *node = prudence_hash_lookup(table, key, has_key, &key);

    return node ? prudence_hash_entry(node, struct object, node) : NULL;
}

INLINED void prudence_look_up(struct crew_member *self, uint64_t key, bool checked)
{
    const struct object *object;

    prudence_read_lock();
    object = find_object(key);
    if (object)
        self->sum += object->value;
    if (object && checked) {
        hash_maybe_yield(self);
        check_object(object, key);
    }
    prudence_read_unlock();
    self->done++;
}

INLINED void add_object(struct crew_member *self, struct object *object, uint64_t key, bool checked)
{
    if (!object)
        hash_fault("no memory for an object");
    if (checked) {
        __atomic_store_n(&object->state, ELEMENT_NEW, __ATOMIC_RELAXED);
        hash_maybe_yield(self);
    }
    object->key = key;
    object->value = hash_value_of(key);
    __atomic_store_n(&object->state, ELEMENT_IN, __ATOMIC_RELAXED);
    prudence_read_lock();
    prudence_hash_add_duplicate(table, key, &object->node);
    prudence_read_unlock();
}

INLINED void prudence_remove_and_add(struct crew_member *self, uint64_t key, bool checked)
{
    struct object *object;

    prudence_read_lock();
    object = find_object(key);
    if (object && prudence_hash_remove(table, &object->node))
        object = NULL; /* another thread has removed it */
    prudence_read_unlock();
    self->done++;
    if (!object)
        return;
    prudence_cache_free_deferred(hash_cache, object);
    add_object(self, prudence_cache_alloc(hash_cache), key, checked);
    self->done++;
}

void prudence_prepare(void)
{
    const struct prudence_hash_attr attr = {
        .size = sizeof attr, .buckets = hash_load.buckets, .flags = PRUDENCE_HASH_FIXED};
    struct crew_member self;

    crew_member_init(&self, 0);
    table = prudence_hash_create("hash trial", &attr);
    if (!table)
        hash_fault("no memory for the table");
    for (uint64_t key = 0; key < hash_load.buckets; key++)
        add_object(&self, prudence_cache_alloc(hash_cache), key, false);
}

void prudence_check_whole(void)
{
    prudence_read_lock();
    for (uint64_t key = 0; key < hash_load.buckets; key++) {
        const struct object *object = find_object(key);

        if (!object)
            hash_fault("a key is lost");
        check_object(object, key);
        if (prudence_hash_next_duplicate(&object->node, has_key, &key))
            hash_fault("a key is there twice");
    }
    prudence_read_unlock();
    if (prudence_hash_count(table) != hash_load.buckets)
        hash_fault("the table's count is wrong");
}

/* ------------------------------------------------------------------------------------- the loop */

typedef void operation_function(struct crew_member *self, uint64_t key, bool checked);

INLINED void loop(struct crew_member *self, uint64_t operations, operation_function *look_up,
                  operation_function *remove_and_add, bool checked)
{
    uint64_t pairs_below = hash_load.pairs_below, mask = hash_load.buckets - 1;
    uint64_t until = self->done + operations;
    struct driver *driver = &drivers[self->number];

    while (self->done < until) {
        bool updates = crew_random(self) < pairs_below;
        uint64_t key = crew_random(self) & mask;

        if (updates)
            remove_and_add(self, key, checked);
        else
            look_up(self, key, checked);
        driver->updated |= updates;
        maybe_drive(self, driver);
    }
}

void rcu_work(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, rcu_look_up, rcu_remove_and_add, false);
}

void rcu_work_checked(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, rcu_look_up, rcu_remove_and_add, true);
}

void prudence_work(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, prudence_look_up, prudence_remove_and_add, false);
}

void prudence_work_checked(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, prudence_look_up, prudence_remove_and_add, true);
}
