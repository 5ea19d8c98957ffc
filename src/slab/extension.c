/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Calling extensions: each function here calls those of the same name, of all extensions of a slab or a cache. */
#include "slab/extension.h"

#include "slab/cache.h"

/* Each of a set of extensions that has the function, from the first to the last. Left by return only. */
#define FOR_EACH_WITH(function, extension, set)                                                    \
    for (unsigned number_ = 0; number_ < OS_EXTENSIONS; number_++)                                 \
        for (const struct slab_extension *extension =                                              \
                 (set)&EXTENSION_BIT(number_) ? slab_extensions[number_] : NULL;                   \
             extension && extension->function; extension = NULL)

#define ALL_EXTENSIONS (~UINT32_C(0))

/* ------------------------------------------------------------------------------------ caches, slabs */

uint32_t extensions_wanted(const struct cache_layout *layout)
{
    uint32_t wanted = 0;

    for (unsigned i = 0; i < OS_EXTENSIONS; i++)
        if (slab_extensions[i] && slab_extensions[i]->wants && slab_extensions[i]->wants(layout))
            wanted |= EXTENSION_BIT(i);
    return wanted;
}

/* Those before the one that failed are told that it goes. */
bool extensions_cache_made(struct prudence_cache *cache)
{
    uint32_t wanted = cache->extensions;

    FOR_EACH_WITH(cache_made, extension, wanted)
    {
        if (!extension->cache_made(cache)) {
            cache->extensions = wanted & (EXTENSION_BIT(number_) - 1);
            extensions_cache_going(cache);
            return false;
        }
    }
    return true;
}

void extensions_cache_going(struct prudence_cache *cache)
{
    FOR_EACH_WITH(cache_going, extension, cache->extensions)
    extension->cache_going(cache);
}

bool extensions_made(struct slab *slab)
{
    uint32_t wanted = slab->extensions;

    FOR_EACH_WITH(made, extension, wanted)
    {
        if (!extension->made(slab)) {
            slab->extensions = wanted & (EXTENSION_BIT(number_) - 1);
            extensions_going(slab);
            return false;
        }
    }
    return true;
}

void extensions_ready(struct slab *slab)
{
    FOR_EACH_WITH(ready, extension, load_relaxed(&slab->extensions))
    extension->ready(slab);
}

void extensions_going(struct slab *slab)
{
    FOR_EACH_WITH(going, extension, load_relaxed(&slab->extensions))
    extension->going(slab);
}

bool extensions_let_go(struct slab *slab)
{
    FOR_EACH_WITH(may_go, extension, load_relaxed(&slab->extensions))
    {
        if (!extension->may_go(slab))
            return false;
    }
    return true;
}

void extensions_kept(void)
{
    FOR_EACH_WITH(kept, extension, ALL_EXTENSIONS)
    extension->kept();
}

/* The paths are closed first: whoever finds the extension finds them so. */
static void close_path(void **fast_lines)
{
    if (load_relaxed(fast_lines) != os_percpu_owned_lines)
        store_relaxed(fast_lines, os_percpu_owned_lines);
}

void slab_extend(struct slab *slab, unsigned number)
{
    close_path(&slab->fast_lines);
    if (slab->cache->named)
        close_path(&slab->cache->fast_lines);
    __atomic_fetch_or(&slab->extensions, EXTENSION_BIT(number), __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------ objects */

void *extensions_instead(struct prudence_cache *cache, size_t size)
{
    FOR_EACH_WITH(instead, extension, cache->extensions)
    {
        void *object = extension->instead(cache, size);

        if (object)
            return object;
    }
    return NULL;
}

void *extensions_taken(struct prudence_cache *cache, void *object)
{
    FOR_EACH_WITH(taken, extension, cache->extensions)
    {
        object = extension->taken(cache, object);
        if (!object)
            return NULL;
    }
    return object;
}

void extensions_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    FOR_EACH_WITH(allocated, extension, load_relaxed(&slab->extensions))
    extension->allocated(slab, object, size, zeroed);
}

void extensions_freed(struct slab *slab, void *object, const char *what)
{
    FOR_EACH_WITH(freed, extension, load_relaxed(&slab->extensions))
    extension->freed(slab, object, what);
}

void extensions_deferred(struct slab *slab, void *object, const char *what)
{
    FOR_EACH_WITH(deferred, extension, load_relaxed(&slab->extensions))
    extension->deferred(slab, object, what);
}

/* `extensions`: of the object's slab, which may be gone. */
void extensions_after_deferral(struct prudence_cache *cache, uint32_t extensions, bool alone)
{
    FOR_EACH_WITH(after_deferral, extension, extensions)
    extension->after_deferral(cache, alone);
}

void extensions_released(struct slab *slab, void *object)
{
    FOR_EACH_WITH(released, extension, load_relaxed(&slab->extensions))
    extension->released(slab, object);
}

void extensions_safe(struct slab *slab, void *object)
{
    bool released = true;

    FOR_EACH_WITH(safe, extension, load_relaxed(&slab->extensions))
    released &= extension->safe(slab, object);
    if (released)
        extensions_released(slab, object);
}

bool extensions_keep(struct slab *slab, void *object)
{
    FOR_EACH_WITH(keeps, extension, load_relaxed(&slab->extensions))
    {
        if (extension->keeps(slab, object))
            return true;
    }
    return false;
}

bool extensions_own(struct slab *slab, const void *object)
{
    FOR_EACH_WITH(owns, extension, load_relaxed(&slab->extensions))
    {
        if (extension->owns(slab, object))
            return true;
    }
    return false;
}

size_t extensions_size_asked(const struct slab *slab, const void *object)
{
    size_t size = 0;

    FOR_EACH_WITH(size_asked, extension, load_relaxed(&slab->extensions))
    size = size ? size : extension->size_asked(slab, object);
    return size;
}

void extensions_check_live(const struct slab *slab, const void *object, const char *what)
{
    FOR_EACH_WITH(check_live, extension, load_relaxed(&slab->extensions))
    extension->check_live(slab, object, what);
}

void extensions_explain(const struct slab *slab, const void *pointer)
{
    FOR_EACH_WITH(explain, extension, ALL_EXTENSIONS)
    extension->explain(slab, pointer);
}

void extensions_pressure(void)
{
    FOR_EACH_WITH(pressure, extension, ALL_EXTENSIONS)
    extension->pressure();
}
