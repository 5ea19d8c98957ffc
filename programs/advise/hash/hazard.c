/* SPDX-License-Identifier: MIT */
/*
 * hazard: the thesis' table with hazard pointers. A search names each element before it uses it;
 * updates take the bucket's lock and defer removed elements to a domain of kind hazard.
 *
 * A search that goes from element X to Y names Y, then checks whether X still links it. That says
 * that Y is in the chain only if X is. So a removal first marks X's link to Y, in the lowest bit;
 * a search that meets the mark starts over (T. L. Harris, 2001; M. Michael, 2004). X stays named
 * until the check of its link is over, hence two slots.
 */
#include <prudence/hazard.h>

#include "loops.h"
#include "operations.h"

#define REMOVED 1 /* in link.next of a removed element */

static inline bool is_marked(const void *link)
{
    return (uintptr_t)link & REMOVED;
}

/* Returns the link after `from`, named by the slot, or NULL if `from` is of a removed element. */
INLINED struct prudence_list *next_of(struct prudence_hazard *hazard, struct prudence_list *from)
{
    struct prudence_list *next = prudence_hazard_protect(hazard, (void *const *)&from->next);

    return is_marked(next) ? NULL : next;
}

/* Returns the element, which one of the slots names, or NULL if the key is absent. */
INLINED struct element *find_named(struct crew_member *self, struct bucket *bucket, uint64_t key,
                                   struct prudence_hazard *const slots[2], bool checked)
{
    struct prudence_list *link;
    unsigned turn;

again:
    link = &bucket->chain;
    turn = 0;
    while ((link = next_of(slots[turn++ & 1], link))) {
        struct element *element = prudence_list_entry(link, struct element, link);

        if (link == &bucket->chain)
            return NULL;
        if (checked) {
            hash_maybe_yield(self);
            check_element(element, bucket);
        }
        if (element->key == key)
            return element;
    }
    goto again;
}

INLINED void hazard_look_up(struct crew_member *self, uint64_t key, bool checked)
{
    struct prudence_hazard *const slots[2] = {prudence_hazard_acquire(), prudence_hazard_acquire()};
    struct bucket *bucket = bucket_of(key);
    const struct element *element;

    if (!slots[0] || !slots[1])
        hash_fault("no memory for a slot");
    element = find_named(self, bucket, key, slots, checked);
    if (element)
        self->sum += element->value;
    if (element && checked) {
        hash_maybe_yield(self);
        check_element(element, bucket);
    }
    prudence_hazard_release(slots[1]);
    prudence_hazard_release(slots[0]);
    self->done++;
}

/* Works as prudence_list_del_rcu(), after the mark. The mark may be relaxed: a search that reads it
 * matters only after the barrier that follows a later deferral of `next`. */
static inline void mark_and_unlink(struct prudence_list *link)
{
    struct prudence_list *next = link->next;

    __atomic_store_n(&link->next, (struct prudence_list *)((uintptr_t)next | REMOVED),
                     __ATOMIC_RELAXED);
    next->prev = link->prev;
    __atomic_store_n(&link->prev->next, next, __ATOMIC_RELEASE);
}

/* Removes the element and defers it. Returns false if it is absent. */
INLINED bool hazard_remove(struct crew_member *self, uint64_t key, bool checked)
{
    struct bucket *bucket = bucket_of(key);
    struct element *element;

    lock_bucket(self, bucket, checked);
    element = find(self, bucket, key, checked);
    if (element) {
        mark_and_unlink(&element->link);
        if (checked)
            __atomic_store_n(&element->state, ELEMENT_REMOVED, __ATOMIC_RELAXED);
    }
    unlock_bucket(self, bucket, checked);
    self->done++;
    if (!element)
        return false;
    prudence_cache_free_deferred(hash_cache, element);
    return true;
}

INLINED void hazard_remove_and_add(struct crew_member *self, uint64_t key, bool checked)
{
    struct bucket *bucket = bucket_of(key);
    struct element *element;

    if (!hazard_remove(self, key, checked))
        return;
    element = prudence_cache_alloc(hash_cache);
    if (!element)
        hash_fault("no memory for an element");
    fill_in(self, element, key, checked);
    lock_bucket(self, bucket, checked);
    prudence_list_add_rcu(&element->link, &bucket->chain);
    unlock_bucket(self, bucket, checked);
    self->done++;
}

INLINED void loop(struct crew_member *self, uint64_t operations, bool checked)
{
    uint64_t pairs_below = hash_load.pairs_below, mask = hash_load.buckets - 1;
    uint64_t until = self->done + operations;

    while (self->done < until) {
        bool updates = crew_random(self) < pairs_below;
        uint64_t key = crew_random(self) & mask;

        if (updates)
            hazard_remove_and_add(self, key, checked);
        else
            hazard_look_up(self, key, checked);
    }
}

void hazard_search_checked(struct crew_member *self, uint64_t key)
{
    hazard_look_up(self, key, true);
}

bool hazard_remove_checked(struct crew_member *self, uint64_t key)
{
    return hazard_remove(self, key, true);
}

void hazard_work(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, false);
}

void hazard_work_checked(struct crew_member *self, uint64_t operations)
{
    loop(self, operations, true);
}
