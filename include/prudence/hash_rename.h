/* SPDX-License-Identifier: MIT */
/*
 * Names that are changed while readers search. An object goes from one key to another, in one hash
 * table (<prudence/hash.h>) or from one to another, in one step. Readers find the object under the
 * old name until that step, and under the new one afterwards, never under both and never under
 * neither. No reader checks again because of that. ADR 67. (P. McKenney, "Exploiting Deferred
 * Destruction", 2004, section 6.2, has the problem, the names of files, and a solution whose
 * readers check again.)
 *
 * A name is a node of a hash table, a key that does not change while the name is in a table, and a
 * target: a pointer to the object, or the object itself, if copying is as good. To rename means to
 * put a fresh name in the place of the old one:
 *
 *     struct entry { struct prudence_hash_name name; struct directory *in; struct file *file;
 *                    char text[32]; };
 *
 *     fresh = prudence_cache_alloc(entries);
 *     *fresh = (struct entry){.in = to, .file = old->file, ...};
 *     prudence_read_lock();
 *     error = prudence_hash_rename(table, &old->name, table, hash_of(to, text), is_entry, &key,
 *                                  &fresh->name);
 *     prudence_read_unlock();
 *     prudence_cache_free_deferred(entries, error ? fresh : old);
 *
 * Conventions are those of <prudence/hash.h>, and these:
 *  - prudence_hash_add, add_duplicate, put, replace and remove take the `node` of a name. Before a
 *    name is added, or given as `fresh`, prudence_hash_name_init must have prepared it (zeroing
 *    also will).
 *  - Look names up with prudence_hash_lookup_name. A table that has names which are renamed has no
 *    others, and no two with one key.
 *  - Walks (prudence_hash_for_each) visit names one after the other. If one is renamed during the
 *    walk, the walk may visit the old, the fresh, both or neither. prudence_hash_name_is_there
 *    says whether a name counts at this moment.
 */
#ifndef PRUDENCE_HASH_RENAME_H
#define PRUDENCE_HASH_RENAME_H

#include <prudence/hash.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Member of the caller's object. Its key is the node's key. */
struct prudence_hash_name {
    struct prudence_hash_node node;
    uintptr_t change; /* private; atomic; see below */
};

/*
 * Values of `change`. 0: the name exists as long as the table has it. PENDING: not yet. Otherwise
 * the address of another name, which decides: this one exists as long as the other is pending. So
 * one store, of 0 to the name that decides, makes that name appear, and others disappear.
 */
#define PRUDENCE_HASH_NAME_PENDING UINT64_C(1)

PRUDENCE_INLINE void prudence_hash_name_init(struct prudence_hash_name *name)
{
    __atomic_store_n(&name->change, 0, __ATOMIC_RELAXED);
}

/*
 * Returns whether a name that was found in this section counts. Acquire: a reader that has seen a
 * rename sees that rename in all later lookups. A name that decides exists as long as a reader can
 * find its address, because such a name was removed from the table, if at all, after the names that
 * have its address did.
 */
PRUDENCE_INLINE bool prudence_hash_name_is_there(const struct prudence_hash_name *name)
{
    uintptr_t change = __atomic_load_n(&name->change, __ATOMIC_ACQUIRE);

    if (__builtin_expect(change == 0, 1))
        return true;
    if (change == PRUDENCE_HASH_NAME_PENDING)
        return false;
    name = PRUDENCE_CAST(const struct prudence_hash_name *, change);
    return __atomic_load_n(&name->change, __ATOMIC_ACQUIRE) == PRUDENCE_HASH_NAME_PENDING;
}

struct prudence_hash_name_query_ {
    prudence_hash_match match;
    const void *key;
};

static inline bool prudence_hash_name_matches_(const struct prudence_hash_node *node,
                                               const void *of)
{
    const struct prudence_hash_name_query_ *query =
        PRUDENCE_CAST(const struct prudence_hash_name_query_ *, of);

    return query->match(node, query->key) && prudence_hash_name_is_there(prudence_hash_entry(
                                                 node, const struct prudence_hash_name, node));
}

/*
 * Returns the name with this key, in a section of the table's domain, or NULL if there is none.
 * Progress and cost are as for prudence_hash_lookup, plus a load in the line of the node, and
 * another one while that name is being renamed.
 */
PRUDENCE_INLINE struct prudence_hash_name *
prudence_hash_lookup_name(const struct prudence_hash *table, uint64_t hash,
                          prudence_hash_match match, const void *key)
{
    const struct prudence_hash_name_query_ query = {match, key};
    const uint64_t spread = prudence_hash_spread_(hash);
    uintptr_t view, link = prudence_hash_begin_(table, spread, &view);
    struct prudence_hash_node *node;

    /* Like prudence_hash_search_, written out so that the compiler inlines `match`. */
    for (; link & PRUDENCE_HASH_NODE; link = __atomic_load_n(&node->next, __ATOMIC_CONSUME)) {
        struct prudence_hash_name *name;

        node = prudence_hash_node_(link);
        name = prudence_hash_entry(node, struct prudence_hash_name, node);
        if (node->hash == spread && match(node, key) && prudence_hash_name_is_there(name))
            return name;
    }
    if (__builtin_expect(prudence_hash_is_end_(link, view), 1))
        return PRUDENCE_NULL;
    node = prudence_hash_lookup_slow(table, hash, prudence_hash_name_matches_, &query);
    return node ? prudence_hash_entry(node, struct prudence_hash_name, node) : PRUDENCE_NULL;
}

/*
 * In one step removes `old` from table `from`, and adds `fresh`, with this hash and key, to table
 * `to`, which may be the same. To be called inside a section of their domain. Two buckets are
 * locked while they are searched, in an order that is the same for all threads, so no two renames
 * wait for each other. Never waits for readers; needs no memory.
 *
 *  - rename returns EEXIST if another name has the key.
 *  - rename_replace removes that one in the same step, and stores that name in *old_there, if
 *    `old_there` is not NULL. The caller then owns the name. NULL is stored if there was none, and
 *    if an error is returned.
 *
 * If `old` itself has the key, `fresh` replaces it. Returns 0, and `old` belongs to the caller, to
 * be deferred. Otherwise returns an error number with nothing done, and the caller may use `fresh`
 * at once:
 *     EEXIST  see above
 *     ENOENT  `old` is not in `from` (any more); another thread has renamed or removed it
 *     EXDEV   the two tables have different domains, which is reported; a reader in a section of
 *             one could not be sure of names in the other
 *     EINVAL  `fresh` is `old`, or the name that rename_replace would remove, which is reported;
 *             readers of the old name would be led along the chain of the new one. Or NULL
 * Costs as much as an addition and a removal.
 */
PRUDENCE_API int prudence_hash_rename(struct prudence_hash *from, struct prudence_hash_name *old,
                                      struct prudence_hash *to, uint64_t hash,
                                      prudence_hash_match match, const void *key,
                                      struct prudence_hash_name *fresh);
PRUDENCE_API int prudence_hash_rename_replace(struct prudence_hash *from,
                                              struct prudence_hash_name *old,
                                              struct prudence_hash *to, uint64_t hash,
                                              prudence_hash_match match, const void *key,
                                              struct prudence_hash_name *fresh,
                                              struct prudence_hash_name **old_there);

/*
 * In one step `fresh_a` replaces `a`, which is in table `of_a` and has the same key, and `fresh_b`
 * replaces `b` in `of_b`. So two names exchange their targets. Otherwise like prudence_hash_rename.
 * ENOENT: one of both is not there; EINVAL: two of the four are the same, or NULL.
 */
PRUDENCE_API int prudence_hash_exchange(struct prudence_hash *of_a, struct prudence_hash_name *a,
                                        struct prudence_hash_name *fresh_a,
                                        struct prudence_hash *of_b, struct prudence_hash_name *b,
                                        struct prudence_hash_name *fresh_b);

#ifdef __cplusplus
}
#endif

#endif /* PRUDENCE_HASH_RENAME_H */
