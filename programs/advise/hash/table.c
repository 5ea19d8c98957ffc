/* SPDX-License-Identifier: MIT */
/* The table: buckets, initial elements, and the final check. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "operations.h"

struct hash_load hash_load = {.threads = 1, .buckets = 32};
void (*hash_pause)(struct crew_member *self);
struct prudence_cache *hash_cache;
struct prudence_domain *hash_domain;
struct bucket *hash_buckets;
struct spares hash_spares[CREW_MOST];

void hash_fault(const char *what)
{
    fprintf(stderr, "hash table: %s\n", what);
    _exit(EXIT_FAILURE);
}

uint64_t hash_pairs_below(double updates)
{
    return (uint64_t)(updates / (2 - updates) * (double)CREW_RANDOM_END);
}

static void create_cache(enum prudence_domain_kind kind)
{
    struct prudence_cache_attr attr = {.size = sizeof attr};

    hash_domain = kind == PRUDENCE_DOMAIN_HAZARD ? prudence_domain_create("hash trial", kind, NULL)
                                                 : prudence_default_domain();
    attr.domain = hash_domain;
    if (hash_domain)
        hash_cache = prudence_cache_create("hash trial", sizeof(struct element), &attr);
}

void hash_prepare(const struct hash_mechanism *mechanism)
{
    hash_buckets = aligned_alloc(HASH_LINE, hash_load.buckets * sizeof *hash_buckets);
    create_cache(mechanism->domain);
    if (!hash_buckets || !hash_cache)
        hash_fault("no memory");
    memset(hash_buckets, 0, hash_load.buckets * sizeof *hash_buckets);
    for (uint64_t i = 0; i < hash_load.buckets; i++) {
        prudence_list_init(&hash_buckets[i].chain);
        pthread_spin_init(&hash_buckets[i].lock, PTHREAD_PROCESS_PRIVATE);
    }
    mechanism->prepare();
}

struct element *hash_element_of_memory(void)
{
    static struct element *all;
    static uint64_t used;

    if (!all)
        all = aligned_alloc(HASH_LINE, hash_load.buckets * sizeof *all);
    return all ? &all[used++] : NULL;
}

/* Fills the table in another order than by address. The odd step visits each key once. */
void hash_fill(struct element *(*fresh)(void))
{
    uint64_t step = hash_load.buckets * 5 / 8 | 1;

    for (uint64_t i = 0; i < hash_load.buckets; i++) {
        uint64_t key = i * step & (hash_load.buckets - 1);
        struct element *element = fresh();

        if (!element)
            hash_fault("no memory for the elements");
        element->key = key;
        element->value = hash_value_of(key);
        element->state = ELEMENT_IN;
        prudence_list_add_rcu(&element->link, &bucket_of(key)->chain);
    }
}

static uint64_t check_chain(const struct bucket *bucket, bool *seen)
{
    const struct prudence_list *link = &bucket->chain;
    uint64_t count = 0;

    do {
        const struct element *element;

        if (link->next->prev != link)
            hash_fault("a chain's links do not fit");
        link = link->next;
        if (link == &bucket->chain)
            break;
        element = prudence_list_entry(link, const struct element, link);
        check_element(element, bucket);
        if (seen[element->key])
            hash_fault("a key is there twice");
        seen[element->key] = true;
        count++;
    } while (count <= hash_load.buckets);
    return count;
}

void hash_check_chains(void)
{
    bool *seen = calloc(hash_load.buckets, sizeof *seen);
    uint64_t count = 0;

    if (!seen)
        hash_fault("no memory");
    for (uint64_t i = 0; i < hash_load.buckets; i++) {
        if (hash_buckets[i].writer || hash_buckets[i].readers)
            hash_fault("an operation has not ended");
        count += check_chain(&hash_buckets[i], seen);
    }
    free(seen);
    if (count != hash_load.buckets)
        hash_fault("a key is lost");
}
