// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Moves caches of the kernel to Prudence as soon as that has started: prudence_tree=NAME,NAME names
 * them, or prudence_tree=all takes all. prudence_tree_side= says where they move to instead: to
 * kfree_rcu, or with "hastened" nowhere, but kfree_rcu() hastens grace periods as Prudence does.
 * `lock` protects the list of candidates and is held while a cache moves.
 */
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/prudence_tree.h>
#include <linux/printk.h>
#include <linux/string.h>

#include "../slab.h" /* struct kmem_cache */
#include "seams.h"

static DEFINE_MUTEX(lock);
static LIST_HEAD(trees);
static bool changing; /* Prudence has started, and caches have moved */
static char *wanted;  /* value of prudence_tree=, or NULL */
static enum side { PRUDENCE, KFREE_RCU, HASTENED } side;

static int __init parameter(char *text)
{
    wanted = text;
    return 1;
}
__setup("prudence_tree=", parameter);

static int __init side_parameter(char *text)
{
    static const char *const names[] __initconst = {"prudence", "kfree_rcu", "hastened"};
    int found = match_string(names, ARRAY_SIZE(names), text);

    if (found < 0)
        pr_warn("prudence: prudence_tree_side=%s is no side; using prudence\n", text);
    else
        side = (enum side)found;
    return 1;
}
__setup("prudence_tree_side=", side_parameter);

/* Returns whether prudence_tree= lists `name`, of which `length` characters are compared. */
static bool is_named(const char *name, size_t length)
{
    const char *at = wanted;

    while (at) {
        size_t word = strcspn(at, ",");

        if ((word == length && !strncmp(at, name, length)) || (word == 3 && !strncmp(at, "all", 3)))
            return true;
        at = at[word] ? at + word + 1 : NULL;
    }
    return false;
}

/* ------------------------------------------------------------------------ caches of kmalloc */

#ifdef CONFIG_PRUDENCE_KMALLOC

static struct prudence_tree kmalloc_trees[KMALLOC_SHIFT_HIGH + 1];

static bool is_of_kmalloc(const struct prudence_tree *tree)
{
    return tree >= kmalloc_trees && tree < kmalloc_trees + ARRAY_SIZE(kmalloc_trees);
}

/* From here on kmalloc() asks Prudence. The release orders the stores that filled the cache before
 * any use, as the address dependency does for prudence_tree_cache(). */
static void kmalloc_change(struct prudence_tree *tree)
{
    if (is_of_kmalloc(tree))
        smp_store_release(&tree->slub->prudence, tree->cache);
}

/* kmalloc-8k stays with SLUB, because its objects are aligned to more than a page. */
static void __init kmalloc_add_all(void)
{
    for (unsigned int i = 0; i < ARRAY_SIZE(kmalloc_trees); i++) {
        struct prudence_tree *tree = &kmalloc_trees[i];

        tree->slub = kmalloc_caches[KMALLOC_NORMAL][i];
        if (!tree->slub || tree->slub->align > PAGE_SIZE)
            continue;
        tree->name = tree->slub->name;
        tree->head = PRUDENCE_TREE_NO_HEAD;
        list_add_tail(&tree->link, &trees);
    }
}

DEFINE_STATIC_KEY_FALSE(prudence_tree_hastens);
void gp_note_closed(unsigned int count, size_t stride); /* gp/kernel/hasten.c */

/* Counts what SLUB's kfree_rcu() defers on this CPU. Without interrupts: they call it, too. */
void prudence_tree_note_kfree_rcu(const void *object)
{
    size_t size = is_vmalloc_addr(object) ? PAGE_SIZE : ksize(object);
    unsigned long flags;

    local_irq_save(flags);
    gp_note_closed(1, size);
    local_irq_restore(flags);
}

static void __init kfree_rcu_hastens(void)
{
    static_branch_enable(&prudence_tree_hastens);
}

#else

static void __init kfree_rcu_hastens(void)
{
    pr_warn("prudence: prudence_tree_side=hastened needs CONFIG_PRUDENCE_KMALLOC\n");
}

static void kmalloc_change(struct prudence_tree *tree)
{
}

static void __init kmalloc_add_all(void)
{
}

#endif

/* ------------------------------------------------------------------------------------- moving */

static void change(struct prudence_tree *tree)
{
    const struct kmem_cache *slub = tree->slub;
    struct prudence_cache *cache;

    if (!is_named(tree->name, strlen(tree->name)))
        return;
    if (side == KFREE_RCU)
        WRITE_ONCE(tree->kfree_rcu, tree->head != PRUDENCE_TREE_NO_HEAD);
    if (side != PRUDENCE)
        return;
    cache = prudence_cache_create(tree->name, slub->object_size, slub->align,
                                  slub->flags & SLAB_TYPESAFE_BY_RCU ? PRUDENCE_TYPESAFE : 0,
                                  slub->ctor);
    if (!cache) {
        pr_err("prudence: no memory for the cache '%s', which stays with SLUB\n", tree->name);
        return;
    }
    smp_store_release(&tree->cache, cache);
    kmalloc_change(tree);
    pr_info("prudence: cache '%s' (%u bytes) moved to Prudence\n", tree->name, slub->object_size);
}

void prudence_tree_add(struct prudence_tree *tree, struct kmem_cache *slub)
{
    mutex_lock(&lock);
    tree->slub = slub;
    list_add_tail(&tree->link, &trees);
    if (changing)
        change(tree);
    mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(prudence_tree_add);

void prudence_tree_remove(struct prudence_tree *tree)
{
    mutex_lock(&lock);
    list_del(&tree->link);
    if (prudence_cache_destroy(tree->cache))
        pr_err("prudence: cache '%s' still has live objects, whose memory is lost\n", tree->name);
    tree->cache = NULL;
    mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(prudence_tree_remove);

/* Allocates all objects or none, like kmem_cache_alloc_bulk(). */
int prudence_tree_alloc_bulk(struct prudence_tree *tree, struct kmem_cache *slub, gfp_t gfp,
                             size_t count, void **objects)
{
    struct prudence_cache *cache = prudence_tree_cache(tree);
    size_t i;

    if (!cache)
        return kmem_cache_alloc_bulk(slub, gfp, count, objects);
    for (i = 0; i < count; i++) {
        objects[i] = prudence_cache_alloc(cache, gfp);
        if (!objects[i])
            break;
    }
    if (i == count)
        return (int)count;
    while (i)
        prudence_cache_free(cache, objects[--i]);
    return 0;
}
EXPORT_SYMBOL_GPL(prudence_tree_alloc_bulk);

void prudence_tree_free_bulk(struct prudence_tree *tree, struct kmem_cache *slub, size_t count,
                             void **objects)
{
    if (!prudence_tree_cache(tree)) {
        kmem_cache_free_bulk(slub, count, objects);
        return;
    }
    for (size_t i = 0; i < count; i++)
        prudence_tree_free(tree, slub, objects[i]);
}
EXPORT_SYMBOL_GPL(prudence_tree_free_bulk);

/* Warns about listed names that no cache has yet when the kernel has booted. The name may be a
 * mistake, or a cache of a module that is loaded later. */
static int __init report_unknown(void)
{
    const char *at = changing ? wanted : NULL;

    mutex_lock(&lock);
    while (at) {
        size_t word = strcspn(at, ",");
        struct prudence_tree *tree;
        bool known = word == 3 && !strncmp(at, "all", 3);

        list_for_each_entry(tree, &trees, link) known |=
            strlen(tree->name) == word && !strncmp(tree->name, at, word);
        if (!known)
            pr_warn("prudence: prudence_tree= names '%.*s', but no such cache exists yet\n",
                    (int)word, at);
        at = at[word] ? at + word + 1 : NULL;
    }
    mutex_unlock(&lock);
    return 0;
}
late_initcall(report_unknown);

static int __init change_all(void)
{
    struct prudence_tree *tree;

    if (!wanted)
        return 0;
    if (!prudence_shrinker()) { /* the last step of Prudence's start */
        pr_err("prudence: the allocator did not start, so all caches stay with SLUB\n");
        return 0;
    }
    mutex_lock(&lock);
    changing = true;
    kmalloc_add_all();
    list_for_each_entry(tree, &trees, link) change(tree);
    if (side == HASTENED)
        kfree_rcu_hastens();
    mutex_unlock(&lock);
    return 0;
}
postcore_initcall_sync(change_all); /* Prudence starts at postcore_initcall */
