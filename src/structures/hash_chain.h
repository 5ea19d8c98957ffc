/* SPDX-License-Identifier: MIT */
/*
 * Chains of the hash table, for those who update them: locking one, finding a place in it, changing it there. What a chain is, and
 * what its readers rely on: hash.h.
 */
#ifndef STRUCTURES_HASH_CHAIN_H
#define STRUCTURES_HASH_CHAIN_H

#include "structures/hash.h"

/* A place in a locked chain. */
struct place {
    uintptr_t *bucket;
    uintptr_t first; /* what the bucket held when the search began, without the lock */
    uintptr_t *link; /* the place: the link to ... */
    uintptr_t next;  /* ... this; `link` is `bucket` at the beginning of the chain */
    unsigned passed; /* nodes before it */
};

/* At the beginning of the chain, which is locked. */
static inline void place_begin(struct place *place, uintptr_t *bucket, uintptr_t first)
{
    *place = (struct place){.bucket = bucket, .first = first, .link = bucket, .next = first};
}

/* Locks the chain of the hash in the array that is the view. False: it is not in that array, or not yet. */
static inline bool chain_try_lock(uintptr_t view, uint64_t hash, struct place *place)
{
    uintptr_t *bucket = &view_words(view)[hash_index(hash, view_order(view))];

    place_begin(place, bucket, hash_lock(bucket));
    return place->first && !(place->first & HASH_MOVED);
}

static inline void pass(struct place *place)
{
    place->link = &prudence_hash_node_(place->next)->next;
    place->next = load_relaxed(place->link);
    place->passed++;
}

/* To the first node whose hash is not lower: one with it, if there is any. */
static inline void to_hash(struct place *place, uint64_t hash)
{
    while (is_node(place->next) && prudence_hash_node_(place->next)->hash < hash)
        pass(place);
}

static inline bool is_at_hash(const struct place *place, uint64_t hash)
{
    return is_node(place->next) && prudence_hash_node_(place->next)->hash == hash;
}

/* From there to the key, or to the node. */
static inline bool to_key(struct place *place, uint64_t hash, prudence_hash_match match,
                          const void *key)
{
    for (; is_at_hash(place, hash); pass(place))
        if (match(prudence_hash_node_(place->next), key))
            return true;
    return false;
}

static inline bool to_node(struct place *place, const struct prudence_hash_node *node)
{
    for (; is_at_hash(place, node->hash); pass(place))
        if (prudence_hash_node_(place->next) == node)
            return true;
    return false;
}

/* hash.c: readies the chain that chain_try_lock has not found, with nothing locked. */
void hash_move_first(const struct hash_table *table, uintptr_t view, uint64_t hash);

/* hash.c: behind an update that changed the number of objects, or did not, with nothing locked. */
void hash_counted(struct hash_table *table, int64_t objects, unsigned passed);
void hash_replaced(struct hash_table *table);

#endif /* STRUCTURES_HASH_CHAIN_H */
