/* SPDX-License-Identifier: MIT */
/*
 * Objects of any size whose readers are in a domain of the program: a cache for each size class,
 * made when first needed, and one of blocks, which is made with the family, so that the domain
 * cannot be destroyed before. An object's slab leads to its cache and domain, so frees and
 * deferrals are those of all objects.
 */
#include <errno.h>

#include <prudence/prudence.h>
#include <prudence/structure.h>

#include "heap/caches.h"
#include "heap/object.h"
#include "heap/size_class.h"
#include "valid_name.h"

struct prudence_sizes {
    struct prudence_cache *blocks;
    struct prudence_cache *classes[CLASSES]; /* NULL: not made yet; atomic */
    char name[CACHE_NAME_SIZE - sizeof "-32768" + 1];
};

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
    struct cache_layout layout = {
        .object_size = size_class_bytes(class), .named = true, .domain = sizes->blocks->domain};
    char name[CACHE_NAME_SIZE];

    size_class_name(name, sizes->name, layout.object_size);
    return caches_make(&sizes->classes[class], name, &layout);
}

void *prudence_sizes_alloc(struct prudence_sizes *sizes, size_t size)
{
    struct prudence_cache *cache;
    unsigned class;

    if (unlikely(size > OBJECT_SIZE_MAX))
        return prudence_cache_alloc_block(sizes->blocks, size, NULL);
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
    for (unsigned class = 0; class < CLASSES; class ++) {
        struct prudence_cache *cache = sizes->classes[class];

        error = cache ? caches_destroy(cache, what, caller) : 0;
        if (error)
            return error;
        sizes->classes[class] = NULL;
    }
    error = caches_destroy(sizes->blocks, what, caller);
    if (!error)
        os_meta_free(sizes, sizeof *sizes);
    return error;
}
