/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Caches of the kernel whose objects may come from Prudence instead of SLUB, as the boot parameter prudence_tree= says
 * (docs/adr/0084).
 *
 * A subsystem names a cache once (DEFINE_PRUDENCE_TREE), adds it when SLUB has made its own, and calls the functions below
 * instead of SLUB's. A cache changes at late_initcall, once and for good. Objects from before stay SLUB's: an object's page says
 * whose it is, so every free asks for it.
 *
 * Where prudence_tree_defer() returns false, and always when the cache has not changed, nothing has happened, and the caller goes
 * on with its call_rcu().
 *
 * With prudence_tree_side=kfree_rcu objects stay SLUB's, and prudence_tree_defer() hands them to kfree_rcu: for comparison.
 */
#ifndef LINUX_PRUDENCE_TREE_H
#define LINUX_PRUDENCE_TREE_H

#include <linux/slab.h>

#ifdef CONFIG_PRUDENCE
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/prudence.h>
#include <linux/rcupdate.h>

struct prudence_tree {
    struct prudence_cache *cache; /* NULL: allocations are SLUB's; written once, with release */
    struct kmem_cache *slub;      /* whose size, alignment and constructor it has */
    const char *name;             /* in prudence_tree= and in debugfs */
    unsigned long head;           /* where an object's rcu_head is */
    bool kfree_rcu;               /* objects are SLUB's, and freed by kfree_rcu; written once */
    struct list_head link;
};

#define PRUDENCE_TREE_NO_HEAD (~0ul)

/* Of objects of that type. Their rcu_head is theirs from the moment on that they are deferred. */
#define DEFINE_PRUDENCE_TREE(cache, type, member)                                                  \
    static struct prudence_tree cache##_tree __read_mostly = {.name = #cache,                      \
                                                              .head = offsetof(type, member)}

/* `slub` has been made. Changes at late_initcall, or now if that is over. Not in an interrupt. */
void prudence_tree_add(struct prudence_tree *tree, struct kmem_cache *slub);

/* Before `slub` is destroyed: no object is live, nobody allocates, and rcu_barrier() has been called. May sleep. */
void prudence_tree_remove(struct prudence_tree *tree);

/* As kmem_cache_alloc_bulk() and kmem_cache_free_bulk(); the latter for objects that no reader can find. */
int prudence_tree_alloc_bulk(struct prudence_tree *tree, struct kmem_cache *slub, gfp_t gfp,
                             size_t count, void **objects);
void prudence_tree_free_bulk(struct prudence_tree *tree, struct kmem_cache *slub, size_t count,
                             void **objects);

/*
 * The address dependency orders what the cache holds before its use. A thread that frees an object of Prudence's sees that the
 * cache has changed, because the allocation saw it before the object was handed over.
 */
static inline struct prudence_cache *prudence_tree_cache(const struct prudence_tree *tree)
{
    return READ_ONCE(tree->cache);
}

/* Whether an object that was deferred before this may have been freed without a callback. */
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

/* As kmem_cache_alloc_lru(). Prudence's objects are not accounted to a memory cgroup. */
static inline void *prudence_tree_alloc_lru(struct prudence_tree *tree, struct kmem_cache *slub,
                                            struct list_lru *lru, gfp_t gfp)
{
    struct prudence_cache *cache = prudence_tree_cache(tree);

    return cache ? prudence_cache_alloc(cache, gfp) : kmem_cache_alloc_lru(slub, lru, gfp);
}

/* An object that no reader can find: it was never published, or its grace period is over. */
static inline void prudence_tree_free(struct prudence_tree *tree, struct kmem_cache *slub,
                                      void *object)
{
    if (!prudence_tree_cache(tree) || !prudence_try_kfree(object))
        kmem_cache_free(slub, object);
}

/* An object that no reader can find from now on. */
static inline bool prudence_tree_defer(struct prudence_tree *tree, void *object)
{
    if (prudence_tree_cache(tree))
        return prudence_try_kfree_deferred(object);
    if (!READ_ONCE(tree->kfree_rcu))
        return false;
    kvfree_call_rcu(object + tree->head, (rcu_callback_t)tree->head); /* as kfree_rcu() */
    return true;
}

/* Memory of any size that goes with the objects of a cache, as kmalloc() gives it. */
static inline void *prudence_tree_kmalloc(struct prudence_tree *tree, size_t size, gfp_t gfp)
{
    return prudence_tree_cache(tree) ? prudence_kmalloc(size, gfp) : kmalloc(size, gfp);
}

static inline void prudence_tree_kfree(struct prudence_tree *tree, void *object)
{
    if (!prudence_tree_cache(tree) || !prudence_try_kfree(object))
        kfree(object);
}

/* The same when readers may still find it. False: it is not Prudence's, and nothing has happened. */
static inline bool prudence_tree_kfree_deferred(struct prudence_tree *tree, void *object)
{
    return prudence_tree_cache(tree) && prudence_try_kfree_deferred(object);
}

#else

#define DEFINE_PRUDENCE_TREE(cache, type, member)                                                  \
    struct prudence_tree /* the semicolon that follows ends this declaration */
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

#endif /* LINUX_PRUDENCE_TREE_H */
