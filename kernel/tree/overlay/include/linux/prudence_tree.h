/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Lets caches of the kernel take their objects from Prudence instead of SLUB, if the boot parameter
 * prudence_tree= lists them (docs/adr/0084).
 *
 * A subsystem defines a cache once (DEFINE_PRUDENCE_TREE), adds it after SLUB has created its own,
 * and calls the functions below instead of SLUB's. A cache moves once and for good, when Prudence
 * has started (postcore_initcall). Objects allocated earlier stay with SLUB, so every free reads
 * the object's page to find the owner.
 *
 * If prudence_tree_defer() returns false, as it always does for a cache that has not moved, nothing
 * has happened and the caller goes on with call_rcu().
 *
 * For comparison, prudence_tree_side=kfree_rcu leaves the objects with SLUB and makes
 * prudence_tree_defer() pass them to kfree_rcu.
 */
#ifndef LINUX_PRUDENCE_TREE_H
#define LINUX_PRUDENCE_TREE_H

#include <linux/slab.h>

#ifdef CONFIG_PRUDENCE
#include <linux/cache.h>
#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>

struct prudence_tree {
    struct prudence_cache *cache; /* NULL while SLUB allocates; written once, with release */
    struct kmem_cache *slub;      /* gives the size, alignment and constructor */
    const char *name;             /* in prudence_tree= and in debugfs */
    unsigned long head;           /* offset of an object's rcu_head */
    bool kfree_rcu;               /* SLUB's objects, freed by kfree_rcu; written once */
    struct list_head link;
};

#define PRUDENCE_TREE_NO_HEAD (~0ul)

/* Defines the tree of a cache of `type`. `member` is the rcu_head, free for use once the object is
 * deferred. */
#define DEFINE_PRUDENCE_TREE(cache, type, member)                                                  \
    static struct prudence_tree cache##_tree __read_mostly = {.name = #cache,                      \
                                                              .head = offsetof(type, member)}

/* Adds `slub`, which has been created. A listed cache moves when Prudence has started, or at once
 * if it has. May sleep. */
void prudence_tree_add(struct prudence_tree *tree, struct kmem_cache *slub);

/* Called before `slub` is destroyed, when no object is live, no thread allocates and rcu_barrier()
 * has been called. May sleep. */
void prudence_tree_remove(struct prudence_tree *tree);

/* Like kmem_cache_alloc_bulk() and kmem_cache_free_bulk(). No reader may be able to find the
 * objects that are freed. */
int prudence_tree_alloc_bulk(struct prudence_tree *tree, struct kmem_cache *slub, gfp_t gfp,
                             size_t count, void **objects);
void prudence_tree_free_bulk(struct prudence_tree *tree, struct kmem_cache *slub, size_t count,
                             void **objects);

/*
 * The address dependency orders the stores that filled the cache before any use. A thread that
 * frees one of Prudence's objects sees that the cache has moved, because the allocating thread saw
 * that before handing the object over.
 */
static inline struct prudence_cache *prudence_tree_cache(const struct prudence_tree *tree)
{
    return READ_ONCE(tree->cache);
}

/* Returns whether an object deferred before this call may have been freed without a callback. */
static inline bool prudence_tree_changed(const struct prudence_tree *tree)
{
    return prudence_tree_cache(tree) || READ_ONCE(tree->kfree_rcu);
}

static inline void *prudence_tree_alloc(struct prudence_tree *tree, struct kmem_cache *slub,
                                        gfp_t gfp)
{
    struct prudence_cache *cache = prudence_tree_cache(tree);

    return cache ? prudence_cache_alloc(cache, gfp) : kmem_cache_alloc(slub, gfp);
}

/* Like kmem_cache_alloc_lru(). Prudence does not charge objects to a memory cgroup. */
static inline void *prudence_tree_alloc_lru(struct prudence_tree *tree, struct kmem_cache *slub,
                                            struct list_lru *lru, gfp_t gfp)
{
    struct prudence_cache *cache = prudence_tree_cache(tree);

    return cache ? prudence_cache_alloc(cache, gfp) : kmem_cache_alloc_lru(slub, lru, gfp);
}

/* Frees an object that no reader can find, because it was never published or its grace period is
 * over. */
static inline void prudence_tree_free(struct prudence_tree *tree, struct kmem_cache *slub,
                                      void *object)
{
    if (!prudence_tree_cache(tree) || !prudence_try_kfree(object))
        kmem_cache_free(slub, object);
}

/* Defers an unlinked object; readers that found it earlier may still use it. */
static inline bool prudence_tree_defer(struct prudence_tree *tree, void *object)
{
    if (prudence_tree_cache(tree))
        return prudence_try_kfree_deferred(object);
    if (!READ_ONCE(tree->kfree_rcu))
        return false;
    kvfree_call_rcu(object + tree->head, (rcu_callback_t)tree->head); /* like kfree_rcu() */
    return true;
}

/* Allocates memory of any size that accompanies a cache's objects, like kmalloc(). */
static inline void *prudence_tree_kmalloc(struct prudence_tree *tree, size_t size, gfp_t gfp)
{
    return prudence_tree_cache(tree) ? prudence_kmalloc(size, gfp) : kmalloc(size, gfp);
}

static inline void prudence_tree_kfree(struct prudence_tree *tree, void *object)
{
    if (!prudence_tree_cache(tree) || !prudence_try_kfree(object))
        kfree(object);
}

/* Defers such memory while readers may still use it. Returns false, and does nothing, if the memory
 * is not Prudence's. */
static inline bool prudence_tree_kfree_deferred(struct prudence_tree *tree, void *object)
{
    return prudence_tree_cache(tree) && prudence_try_kfree_deferred(object);
}

#else

#define DEFINE_PRUDENCE_TREE(cache, type, member)                                                  \
    struct prudence_tree /* ended by the semicolon that follows */
#define prudence_tree_add(tree, slub)                                                              \
    do {                                                                                           \
    } while (0)
#define prudence_tree_remove(tree)                                                                 \
    do {                                                                                           \
    } while (0)
#define prudence_tree_changed(tree)                   false
#define prudence_tree_alloc(tree, slub, gfp)          kmem_cache_alloc(slub, gfp)
#define prudence_tree_alloc_lru(tree, slub, lru, gfp) kmem_cache_alloc_lru(slub, lru, gfp)
#define prudence_tree_free(tree, slub, object)        kmem_cache_free(slub, object)
#define prudence_tree_defer(tree, object)             false
#define prudence_tree_alloc_bulk(tree, slub, gfp, count, objects)                                  \
    kmem_cache_alloc_bulk(slub, gfp, count, objects)
#define prudence_tree_free_bulk(tree, slub, count, objects)                                        \
    kmem_cache_free_bulk(slub, count, objects)
#define prudence_tree_kmalloc(tree, size, gfp) kmalloc(size, gfp)
#define prudence_tree_kfree(tree, object)      kfree(object)
#define prudence_tree_kfree_deferred(tree, object) false

#endif

/* For kfree(), kfree_rcu() and ksize(), which do not know an object's cache. False or 0 if it is
 * not Prudence's, and always in a kernel whose kmalloc() is SLUB's alone. */
#ifdef CONFIG_PRUDENCE_KMALLOC
DECLARE_STATIC_KEY_FALSE(prudence_tree_hastens); /* prudence_tree_side=hastened */
void prudence_tree_note_kfree_rcu(const void *object);

static inline bool prudence_tree_try_kfree_deferred(void *object)
{
    if (prudence_try_kfree_deferred(object))
        return true;
    if (static_branch_unlikely(&prudence_tree_hastens))
        prudence_tree_note_kfree_rcu(object);
    return false;
}
#define prudence_tree_try_kfree(object) prudence_try_kfree(object)
#define prudence_tree_ksize(object)     prudence_ksize(object)
#else
#define prudence_tree_try_kfree(object)          false
#define prudence_tree_try_kfree_deferred(object) false
#define prudence_tree_ksize(object)              ((size_t)0)
#endif

#endif /* LINUX_PRUDENCE_TREE_H */
