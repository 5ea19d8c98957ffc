/* SPDX-License-Identifier: MIT */
/*
 * A name that becomes another name, in docs/how-to/structures.md.
 *
 * ctest: not-with thread (one thread)
 */
#include <errno.h>

#include <prudence/hash_rename.h>
#include <prudence/prudence.h>
#include <prudence/rcu.h>
#include <stdio.h>
#include <string.h>

struct entry {
    struct prudence_hash_name name;
    struct directory *in; /* `in` and `text` are the key and never change */
    char text[32];
    struct file *file;
};

struct key {
    struct directory *in;
    const char *text;
};

static uint64_t renames_begun, renames_done;

static uint64_t hash_of(const struct key *key)
{
    uint64_t hash = 0;

    for (const char *at = key->text; *at; at++)
        hash = prudence_hash_mix(hash ^ (unsigned char)*at);
    return hash;
}

static bool is_entry(const struct prudence_hash_node *node, const void *key)
{
    const struct key *wanted = key;
    const struct entry *entry = prudence_hash_entry(node, const struct entry, name.node);

    return entry->in == wanted->in && !strcmp(entry->text, wanted->text);
}

static void fill_entry(struct entry *entry, const struct key *key, struct file *file)
{
    entry->in = key->in;
    snprintf(entry->text, sizeof entry->text, "%s", key->text);
    entry->file = file;
}

static int rename_entry(struct prudence_hash *names, struct prudence_cache *entries,
                        struct entry *old, const struct key *to)
{
    struct entry *fresh = prudence_cache_alloc(entries);
    int error;

    if (!fresh)
        return ENOMEM;
    fill_entry(fresh, to, old->file);
    prudence_hash_name_init(&fresh->name);
    prudence_read_lock();
    error = prudence_hash_rename(names, &old->name, names, hash_of(to), is_entry, to, &fresh->name);
    prudence_read_unlock();
    if (error) /* EEXIST, or ENOENT if another thread has renamed or removed the entry */
        prudence_cache_free(entries, fresh);
    else
        prudence_cache_free_deferred(entries, old);
    return error;
}

static bool is_there(const struct prudence_hash *names, const struct key *key)
{
    bool found;

    prudence_read_lock();
    found = prudence_hash_lookup_name(names, hash_of(key), is_entry, key) != NULL;
    prudence_read_unlock();
    return found;
}

/* Returns true if one of two names exists. Tries again if a rename ran in between. */
static bool either_is_there(const struct prudence_hash *names, const struct key *one,
                            const struct key *two)
{
    for (;;) {
        bool found;

        uint64_t before = __atomic_load_n(&renames_done, __ATOMIC_ACQUIRE);
        found = is_there(names, one) || is_there(names, two);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (__atomic_load_n(&renames_begun, __ATOMIC_RELAXED) != before)
            continue;
        return found;
    }
}

int main(void)
{
    struct prudence_hash *names = prudence_hash_create("names", NULL);
    struct prudence_cache *entries = prudence_cache_create("entries", sizeof(struct entry), NULL);
    struct entry *old = prudence_cache_alloc(entries);
    const struct key from = {.text = "draft"}, to = {.text = "letter"};

    fill_entry(old, &from, NULL);
    prudence_hash_name_init(&old->name);
    prudence_read_lock();
    prudence_hash_add_duplicate(names, hash_of(&from), &old->name.node);
    prudence_read_unlock();
    __atomic_fetch_add(&renames_begun, 1, __ATOMIC_RELEASE);
    if (rename_entry(names, entries, old, &to))
        return 1;
    __atomic_fetch_add(&renames_done, 1, __ATOMIC_RELEASE);
    return is_there(names, &from) || !either_is_there(names, &from, &to);
}
