/* SPDX-License-Identifier: MIT */
/*
 * The loop for names that are renamed, as a template: an update moves an object from one key to the
 * next or back. The file that includes this has defined
 *     struct name                          with key and value
 *     struct name *name_of(key)            in a section; NULL: none
 *     void add(name)                       in a section
 *     bool rename_to(old, key)             begins in the section that found `old`, and leaves it
 */
#ifndef BENCH_STRUCTURES_NAMES_LOOP_H
#define BENCH_STRUCTURES_NAMES_LOOP_H

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "prudence_sections.h"

static struct prudence_cache *cache;

static inline struct name *make_name(uint64_t key, uint64_t value)
{
    struct name *name = prudence_cache_alloc(cache);

    name->key = key;
    name->value = value;
    return name;
}

static inline bool find(uint64_t key, uint64_t *value)
{
    const struct name *name = name_of(key);

    if (name)
        *value = name->value;
    return name;
}

/* Renames the object. Its two keys differ in the lowest bit. If neither exists, it is made. */
static inline bool flip(uint64_t key)
{
    struct name *name;

    prudence_read_lock();
    name = name_of(key);
    if (name)
        return rename_to(name, key ^ 1);
    name = name_of(key ^ 1);
    if (name)
        return rename_to(name, key);
    add(make_name(key, key));
    prudence_read_unlock();
    return true;
}

#include "loop.h"

#endif /* BENCH_STRUCTURES_NAMES_LOOP_H */
