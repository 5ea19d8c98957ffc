/* SPDX-License-Identifier: MIT */
/*
 * Objects of any size whose readers are in a domain of the program: a cache for each size class,
 * made when first needed, and one of blocks, which is made with the family, so that the domain
 * cannot be destroyed before. An object's slab leads to its cache and domain, so frees and
 * deferrals are those of all objects.
 *
 * The structures of the last families that were destroyed are kept, without caches. So a later use
 * comes to a slow path, which reports it.
 */
#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/structure.h>

#include "gp/user/domain.h"
#include "heap/caches.h"
#include "heap/heap.h"
#include "heap/object.h"
#include "heap/size_class.h"
#include "valid_name.h"

struct prudence_sizes {
    struct prudence_cache *blocks;           /* NULL: destroyed */
    struct prudence_cache *classes[CLASSES]; /* NULL: not made yet; atomic */
    char name[CACHE_NAME_SIZE - sizeof "-131072" + 1];
};

#define FAMILIES_KEPT 32

static struct prudence_sizes *ended_families[FAMILIES_KEPT]; /* under heap_lock */
static unsigned next_ended_family;

static void bury_family(struct prudence_sizes *sizes)
{
    struct prudence_sizes *oldest;

    sizes->blocks = NULL;
    os_lock_take(&heap_lock);
    oldest = ended_families[next_ended_family];
    ended_families[next_ended_family] = sizes;
    next_ended_family = (next_ended_family + 1) % FAMILIES_KEPT;
    os_lock_release(&heap_lock);
    if (oldest)
        os_meta_free(oldest, sizeof *oldest);
}

static void require_family(const struct prudence_sizes *sizes, const char *what)
{
    if (unlikely(!sizes->blocks))
        os_panic("%s: the family '%s' (%p) was destroyed", what, sizes->name, (const void *)sizes);
}

struct prudence_sizes *prudence_sizes_create(const char *name, struct prudence_domain *domain)
{
    static const char what[] = "prudence_sizes_create";
    struct prudence_sizes *sizes;

    if (!name_is_valid(what, name)) {
        errno = EINVAL;
        return NULL;
    }
    if (domain)
        gp_domain_check(domain, what, __builtin_return_address(0));
    sizes = os_meta_alloc(sizeof *sizes);
    if (!sizes) {
        errno = ENOMEM;
        return NULL;
    }
    sizes->blocks = prudence_cache_create_blocks(name, domain);
    if (!sizes->blocks) {
        os_meta_free(sizes, sizeof *sizes);
        return NULL;
    }
    for (unsigned i = 0; i < sizeof sizes->name - 1 && name[i]; i++)
        sizes->name[i] = name[i];
    return sizes;
}

static struct prudence_cache *sizes_make_class(struct prudence_sizes *sizes, unsigned class)
{
    struct cache_layout layout = {.object_size = size_class_bytes(class), .named = true};
    char name[CACHE_NAME_SIZE];

    require_family(sizes, "prudence_sizes_alloc");
    layout.domain = sizes->blocks->domain;
    size_class_name(name, sizes->name, layout.object_size);
    return caches_make(&sizes->classes[class], name, &layout);
}

void *prudence_sizes_alloc(struct prudence_sizes *sizes, size_t size)
{
    struct prudence_cache *cache;
    unsigned class;

    if (unlikely(size > size_class_most())) {
        require_family(sizes, "prudence_sizes_alloc");
        return prudence_cache_alloc_block(sizes->blocks, size, NULL);
    }
    class = size_class_of(max_size(size, 1));
    cache = load_acquire(&sizes->classes[class]);
    if (unlikely(!cache))
        cache = sizes_make_class(sizes, class);
    if (unlikely(!cache)) {
        errno = ENOMEM;
        return NULL;
    }
    return object_alloc(cache, max_size(size, 1), "prudence_sizes_alloc");
}

int prudence_sizes_destroy(struct prudence_sizes *sizes)
{
    static const char what[] = "prudence_sizes_destroy";
    void *caller = __builtin_return_address(0);
    int error;

    if (!sizes)
        return EINVAL;
    require_family(sizes, what);
    for (unsigned class = 0; class < CLASSES; class ++) {
        struct prudence_cache *cache = sizes->classes[class];

        error = cache ? caches_destroy(cache, what, caller) : 0;
        if (error)
            return error;
        sizes->classes[class] = NULL;
    }
    error = caches_destroy(sizes->blocks, what, caller);
    if (!error)
        bury_family(sizes);
    return error;
}
