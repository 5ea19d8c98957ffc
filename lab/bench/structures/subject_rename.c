/* SPDX-License-Identifier: MIT */
/* <prudence/hash_rename.h>: an update renames. Compared with that, a program without it adds the
 * new name and then removes the old one, so that readers find both in between. */
#include <prudence/hash_rename.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include <stdlib.h>

#include "subject.h"

struct name {
    struct prudence_hash_name name;
    uint64_t key, value;
};

static struct prudence_hash *table;
static bool in_one_step;

static inline bool has_key(const struct prudence_hash_node *node, const void *key)
{
    return prudence_hash_entry(node, const struct name, name.node)->key == *(const uint64_t *)key;
}

static inline struct name *name_of(uint64_t key)
{
    struct prudence_hash_name *name =
        prudence_hash_lookup_name(table, prudence_hash_mix(key), has_key, &key);

    return name ? prudence_hash_entry(name, struct name, name) : NULL;
}

static inline void add(struct name *name)
{
    prudence_hash_name_init(&name->name);
    prudence_hash_add_duplicate(table, prudence_hash_mix(name->key), &name->name.node);
}

static inline bool rename_to(struct name *old, uint64_t key);

#include "names_loop.h"

static inline bool rename_to(struct name *old, uint64_t key)
{
    struct name *fresh = make_name(key, old->value);
    int error;

    prudence_hash_name_init(&fresh->name);
    if (in_one_step) {
        error = prudence_hash_rename(table, &old->name, table, prudence_hash_mix(key), has_key,
                                     &key, &fresh->name);
    } else {
        prudence_hash_add_duplicate(table, prudence_hash_mix(key), &fresh->name.node);
        error = prudence_hash_remove(table, &old->name.node);
        if (error)
            prudence_hash_remove(table, &fresh->name.node);
    }
    prudence_read_unlock();
    if (error && in_one_step)
        prudence_cache_free(cache, fresh);
    else
        prudence_cache_free_deferred(cache, error ? fresh : old);
    return false;
}

static void start(void)
{
    table = prudence_hash_create("bench", NULL);
    cache = prudence_cache_create("names", sizeof(struct name), NULL);
    if (!table || !cache)
        abort();
}

static void start_in_one_step(void)
{
    in_one_step = true;
    start();
}

static void settle(void)
{
    struct prudence_hash_stats stats;

    prudence_hash_stats(table, &stats);
    prudence_hash_resize(table, stats.buckets);
}

const struct subject subject_rename = {"rename",
                                       "prudence_hash_rename: updates rename",
                                       .start = start_in_one_step,
                                       .fill = fill,
                                       .settle = settle,
                                       .run = run};
const struct subject subject_rename_twice = {
    "rename-twice",   "renames in two steps: the new name is added, the old one removed",
    .start = start,   .fill = fill,
    .settle = settle, .run = run};
