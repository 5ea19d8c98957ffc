/* SPDX-License-Identifier: MIT */
/*
 * A cache of file names, looked up while files are renamed. A lookup that fails during a rename
 * starts over, because the file may have had its new name while the old one was looked up, or the
 * other way round. docs/how-to/example-name-cache.md
 */
#include "example.h"

#include <prudence/hash.h>

#define FILES 256 /* file i has the name 2i or 2i + 1 */

struct entry {
    struct prudence_hash_node node;
    uint64_t name;
    long file;
};

static struct prudence_hash *table;
static struct prudence_cache *cache;

static bool has_name(const struct prudence_hash_node *node, const void *name)
{
    return prudence_hash_entry(node, const struct entry, node)->name == *(const uint64_t *)name;
}

static struct entry *look_up(uint64_t name)
{
    struct prudence_hash_node *node = prudence_hash_lookup(table, name, has_name, &name);

    return node ? prudence_hash_entry(node, struct entry, node) : NULL;
}

/* Returns the file's entry under either name, or NULL. Call inside a section. */
static struct entry *find(unsigned file)
{
    struct entry *entry = look_up(2 * file);

    if (entry)
        return entry;
    meanwhile();
    return look_up(2 * file + 1);
}

static void add(uint64_t name, long file)
{
    struct entry *entry = prudence_cache_alloc(cache);

    MUST(entry);
    entry->name = name;
    entry->file = file;
    prudence_hash_add_duplicate(table, name, &entry->node);
}

/* Gives the file its other name. The caller owns the old entry. */
static struct entry *rename_file(unsigned file)
{
    struct entry *old;

    prudence_read_lock();
    MUST(old = find(file));
    MUST(prudence_hash_remove(table, &old->node) == 0);
    add(old->name ^ 1, file);
    prudence_read_unlock();
    return old;
}

/* --------------------------------------------------------------------------------------- before */

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static long read_before(unsigned random)
{
    struct entry *entry;
    long found;

    pthread_rwlock_rdlock(&lock);
    prudence_read_lock(); /* the table requires a section */
    entry = find(random % FILES);
    found = entry ? entry->file : WRONG;
    prudence_read_unlock();
    pthread_rwlock_unlock(&lock);
    return found;
}

static void update_before(unsigned random)
{
    struct entry *old;

    pthread_rwlock_wrlock(&lock);
    old = rename_file(random % FILES);
    pthread_rwlock_unlock(&lock);
    prudence_cache_free(cache, old);
}

/* ---------------------------------------------------------------------------------------- after */

static unsigned renames; /* odd while a rename is under way */
static pthread_mutex_t renaming = PTHREAD_MUTEX_INITIALIZER;

static long read_after(unsigned random)
{
    struct entry *entry;
    unsigned begin;
    long found;

    do {
        begin = __atomic_load_n(&renames, __ATOMIC_ACQUIRE); /* before the names */
        prudence_read_lock();
        entry = find(random % FILES);
        found = entry ? entry->file : WRONG;
        prudence_read_unlock();
        if (found != WRONG || mistake) /* a found entry is right in any case */
            break;
        __atomic_thread_fence(__ATOMIC_ACQUIRE); /* the names, then the count again */
    } while (begin % 2 || __atomic_load_n(&renames, __ATOMIC_RELAXED) != begin);
    return found;
}

static void update_after(unsigned random)
{
    struct entry *old;

    pthread_mutex_lock(&renaming);
    __atomic_store_n(&renames, renames + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the count, then the names */
    old = rename_file(random % FILES);
    __atomic_store_n(&renames, renames + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&renaming);
    prudence_cache_free_deferred(cache, old);
}

/* ---------------------------------------------------------------------------------------- check */

static void rename_it(void)
{
    update_after(5);
}

static const char *check(void)
{
    update_after(5); /* gives it the second name; the first one comes back in between */
    example_meanwhile = rename_it;
    return read_after(5) == WRONG ? "a file was not found while it was renamed" : NULL;
}

static void set_up(void)
{
    MUST(cache = prudence_cache_create("names", sizeof(struct entry), NULL));
    MUST(table = prudence_hash_create("names", NULL));
    prudence_read_lock();
    for (unsigned i = 0; i < FILES; i++)
        add(2 * i, i);
    prudence_read_unlock();
}
