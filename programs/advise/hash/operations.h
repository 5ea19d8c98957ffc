/* SPDX-License-Identifier: MIT */
/*
 * Operations on a bucket, independent of the mechanism that excludes others, and the checks. All is
 * inlined into each mechanism's loop, where `checked` is a constant.
 *
 * Checks of each bucket: two updates never overlap; with locks, no search overlaps an update; under
 * RCU and hazard pointers, an element that a search uses still has a key of that bucket, even if
 * removed by now.
 * Threads yield at random inside, so that others come in; or a test comes in (hash_pause).
 */
#ifndef ADVISE_HASH_OPERATIONS_H
#define ADVISE_HASH_OPERATIONS_H

#include <sched.h>
#include <stddef.h>

#include "hash.h"

#define INLINED      static inline __attribute__((always_inline))
#define YIELD_ONE_OF 32

extern struct bucket *hash_buckets;

/* A thread's spare elements, last one first. */
struct spares {
    struct prudence_list *first;
} __attribute__((aligned(APART)));

extern struct spares hash_spares[CREW_MOST];

static inline void hash_maybe_yield(struct crew_member *self)
{
    if (hash_pause)
        hash_pause(self);
    else if (crew_random(self) % YIELD_ONE_OF == 0)
        sched_yield();
}

INLINED struct bucket *bucket_of(uint64_t key)
{
    return &hash_buckets[key & (hash_load.buckets - 1)];
}

/* --------------------------------------------------------------------------------------- checks */

/* Sequentially consistent, so of an overlapping search and update one sees the other's mark. */
static inline void check_writer_in(struct crew_member *self, struct bucket *bucket, bool readers)
{
    if (__atomic_exchange_n(&bucket->writer, self->number + 1, __ATOMIC_SEQ_CST))
        hash_fault("two updates of a bucket at the same time");
    if (readers && __atomic_load_n(&bucket->readers, __ATOMIC_SEQ_CST))
        hash_fault("an update while a search is in the bucket");
    hash_maybe_yield(self);
}

static inline void check_writer_out(struct crew_member *self, struct bucket *bucket)
{
    hash_maybe_yield(self);
    if (__atomic_exchange_n(&bucket->writer, 0, __ATOMIC_SEQ_CST) != self->number + 1)
        hash_fault("another thread has ended this update");
}

static inline void check_reader_in(struct crew_member *self, struct bucket *bucket)
{
    __atomic_fetch_add(&bucket->readers, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bucket->writer, __ATOMIC_SEQ_CST))
        hash_fault("a search while an update is in the bucket");
    hash_maybe_yield(self);
}

static inline void check_reader_out(struct bucket *bucket)
{
    __atomic_fetch_sub(&bucket->readers, 1, __ATOMIC_SEQ_CST);
}

/* Checks an element that a search uses. */
static inline void check_element(const struct element *element, const struct bucket *bucket)
{
    if (__atomic_load_n(&element->state, __ATOMIC_RELAXED) == ELEMENT_NEW ||
        bucket_of(element->key) != bucket || element->value != hash_value_of(element->key))
        hash_fault("a search is at an element that is used for something else");
}

/* ----------------------------------------------------------------------------------- operations */

INLINED struct element *find(struct crew_member *self, struct bucket *bucket, uint64_t key,
                             bool checked)
{
    struct element *element;

    prudence_list_for_each_entry_rcu(element, &bucket->chain, link)
    {
        if (checked) {
            hash_maybe_yield(self);
            check_element(element, bucket);
        }
        if (element->key == key)
            return element;
    }
    return NULL;
}

INLINED void search(struct crew_member *self, struct bucket *bucket, uint64_t key, bool checked)
{
    const struct element *element = find(self, bucket, key, checked);

    if (element)
        self->sum += element->value;
    if (element && checked) {
        hash_maybe_yield(self);
        check_element(element, bucket);
    }
}

/* Removes an element. Returns NULL if another thread has removed it and not yet added it again. */
INLINED struct element *take_out(struct crew_member *self, struct bucket *bucket, uint64_t key,
                                 bool checked)
{
    struct element *element = find(self, bucket, key, checked);

    if (!element)
        return NULL;
    prudence_list_del_rcu(&element->link);
    if (checked)
        __atomic_store_n(&element->state, ELEMENT_REMOVED, __ATOMIC_RELAXED);
    return element;
}

INLINED void fill_in(struct crew_member *self, struct element *element, uint64_t key, bool checked)
{
    if (checked) {
        __atomic_store_n(&element->state, ELEMENT_NEW, __ATOMIC_RELAXED);
        hash_maybe_yield(self);
    }
    element->key = key;
    element->value = hash_value_of(key);
    __atomic_store_n(&element->state, ELEMENT_IN, __ATOMIC_RELAXED);
}

/* ------------------------------------------- the bucket's lock, where searches take none */

INLINED void lock_bucket(struct crew_member *self, struct bucket *bucket, bool checked)
{
    pthread_spin_lock(&bucket->lock);
    if (checked)
        check_writer_in(self, bucket, false);
}

INLINED void unlock_bucket(struct crew_member *self, struct bucket *bucket, bool checked)
{
    if (checked)
        check_writer_out(self, bucket);
    pthread_spin_unlock(&bucket->lock);
}

/* ------------------------------------------------------------------------------- spare elements */

INLINED void put_spare(struct crew_member *self, struct element *element)
{
    struct spares *own = &hash_spares[self->number];

    element->link.next = own->first;
    own->first = &element->link;
    /* The compiler must not join a removal and an addition, which are two operations. */
    __asm__ __volatile__("" ::: "memory");
}

INLINED struct element *get_spare(struct crew_member *self)
{
    struct spares *own = &hash_spares[self->number];
    struct element *element = prudence_list_entry(own->first, struct element, link);

    own->first = element->link.next;
    return element;
}

void hash_fill(struct element *(*fresh)(void)); /* adds each key once */
struct element *hash_element_of_memory(void);   /* allocates an element that is never freed */
void hash_check_chains(void);

#endif /* ADVISE_HASH_OPERATIONS_H */
