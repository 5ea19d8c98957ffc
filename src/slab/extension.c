/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Each function here calls the functions of the same name, of all extensions of a slab or cache. */
#include "slab/extension.h"

#include "os/os.h"
#include "slab/cache_type.h"
#include "slab/slab.h"

struct first_blocks slab_first READ_MOSTLY = {.extension = 0};

#define ALL_EXTENSIONS (EXTENSION_BIT(OS_EXTENSIONS) - 1)

/* Removes the first extension from a set and returns it. Returns NULL if none is left. */
static const struct slab_extension *take_first(uint32_t *set)
{
    const struct slab_extension *first = NULL;

    for (; *set && !first; *set &= *set - 1)
        first = slab_extensions[__builtin_ctz(*set)];
    return first;
}

#define for_each_extension(extension, set)                                                         \
    for (uint32_t left_ = (set); ((extension) = take_first(&left_)) != NULL;)

/* Sets of extensions with a function for a frequent step. Written at start, before any cache
 * exists. */
static struct {
    uint32_t instead, taken, allocated, freed, deferred, after_deferral, safe, released, keeps;
} having;

/* Visits extensions of a set that have a function for the step. */
#define for_each_having(extension, step, set)                                                      \
    for (uint32_t left_ = (set)&having.step;                                                       \
         left_ && ((extension) = slab_extensions[__builtin_ctz(left_)], true); left_ &= left_ - 1)

#define SET_OF(step)                                                                               \
    do {                                                                                           \
        having.step = 0;                                                                           \
        for (unsigned i_ = 0; i_ < OS_EXTENSIONS; i_++)                                            \
            if (slab_extensions[i_] && slab_extensions[i_]->step)                                  \
                having.step |= EXTENSION_BIT(i_);                                                  \
    } while (0)

void extensions_start(void)
{
    SET_OF(instead);
    SET_OF(taken);
    SET_OF(allocated);
    SET_OF(freed);
    SET_OF(deferred);
    SET_OF(after_deferral);
    SET_OF(safe);
    SET_OF(released);
    SET_OF(keeps);
}

bool extensions_meet_objects(uint32_t extensions)
{
    return extensions &
           (having.instead | having.taken | having.allocated | having.freed | having.deferred |
            having.after_deferral | having.safe | having.released | having.keeps);
}

/* -------------------------------------------------------------------------------- caches, slabs */

uint32_t extensions_wanted(const struct cache_layout *layout)
{
    uint32_t wanted = 0;

    for (unsigned i = 0; i < OS_EXTENSIONS; i++)
        if (slab_extensions[i] && slab_extensions[i]->wants && slab_extensions[i]->wants(layout))
            wanted |= EXTENSION_BIT(i);
    return wanted;
}

/* Returns the wanted extensions that the cache's slabs have as well. */
uint32_t extensions_of_slabs(uint32_t wanted, const struct cache_layout *layout)
{
    uint32_t of_slabs = wanted;

    for (unsigned i = 0; i < OS_EXTENSIONS; i++)
        if (wanted & EXTENSION_BIT(i) && slab_extensions[i]->only_instead &&
            slab_extensions[i]->only_instead(layout))
            of_slabs &= ~EXTENSION_BIT(i);
    return of_slabs;
}

/* If one fails, tells those that succeeded that the cache goes. */
bool extensions_cache_made(struct prudence_cache *cache)
{
    uint32_t wanted = cache->extensions;

    for (cache->extensions = 0; wanted; wanted &= wanted - 1) {
        unsigned number = (unsigned)__builtin_ctz(wanted);

        if (slab_extensions[number]->cache_made && !slab_extensions[number]->cache_made(cache)) {
            extensions_cache_going(cache);
            return false;
        }
        cache->extensions |= EXTENSION_BIT(number);
    }
    return true;
}

void extensions_cache_going(struct prudence_cache *cache)
{
    const struct slab_extension *extension;

    for_each_extension(extension, cache->extensions)
    {
        if (extension->cache_going)
            extension->cache_going(cache);
    }
}

bool extensions_made(struct slab *slab)
{
    uint32_t wanted = slab->extensions;

    for (slab->extensions = 0; wanted; wanted &= wanted - 1) {
        unsigned number = (unsigned)__builtin_ctz(wanted);

        if (slab_extensions[number]->made && !slab_extensions[number]->made(slab)) {
            extensions_going(slab);
            return false;
        }
        slab->extensions |= EXTENSION_BIT(number);
    }
    return true;
}

void extensions_ready(struct slab *slab)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->ready)
            extension->ready(slab);
    }
}

void extensions_going(struct slab *slab)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->going)
            extension->going(slab);
    }
}

bool extensions_keep_pages(struct slab *slab)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->keeps_pages && extension->keeps_pages(slab))
            return true;
    }
    return false;
}

bool extensions_drop_margins(struct slab *slab)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->drop_margins && !extension->drop_margins(slab))
            return false;
    }
    return true;
}

bool extensions_let_go(struct slab *slab)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->may_go && !extension->may_go(slab))
            return false;
    }
    return true;
}

void extensions_kept(void)
{
    const struct slab_extension *extension;

    for_each_extension(extension, ALL_EXTENSIONS)
    {
        if (extension->kept)
            extension->kept();
    }
}

/* Closes a path. Called first, so that a thread which sees the extension sees closed paths. */
static void close_path(void **fast_percpu)
{
    if (load_relaxed(fast_percpu) != os_percpu_owned_lines)
        store_relaxed(fast_percpu, os_percpu_owned_lines);
}

void slab_extend(struct slab *slab, unsigned number)
{
    close_path(&slab->fast_percpu);
    if (slab->cache->named)
        close_path(&slab->cache->fast_percpu);
    __atomic_fetch_or(&slab->extensions, EXTENSION_BIT(number), __ATOMIC_RELEASE);
}

/* -------------------------------------------------------------------------------------- objects */

void *extensions_instead(struct prudence_cache *cache, size_t size)
{
    const struct slab_extension *extension;
    void *object = NULL;

    for_each_having(extension, instead, cache->extensions)
    {
        if (!object)
            object = extension->instead(cache, size);
    }
    return object;
}

void *extensions_taken(struct prudence_cache *cache, void *object)
{
    const struct slab_extension *extension;

    for_each_having(extension, taken, cache->slab_extensions)
    {
        if (object)
            object = extension->taken(cache, object);
    }
    return object;
}

void extensions_allocated(struct slab *slab, void *object, size_t size, bool zeroed)
{
    const struct slab_extension *extension;

    for_each_having(extension, allocated, load_relaxed(&slab->extensions))
    {
        extension->allocated(slab, object, size, zeroed);
    }
}

void extensions_resized(struct slab *slab, void *object, size_t size)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->resized)
            extension->resized(slab, object, size);
    }
}

void extensions_freed(struct slab *slab, void *object, const char *what)
{
    const struct slab_extension *extension;

    for_each_having(extension, freed, load_relaxed(&slab->extensions))
    {
        extension->freed(slab, object, what);
    }
}

void extensions_deferred(struct slab *slab, void *object, const char *what)
{
    const struct slab_extension *extension;

    for_each_having(extension, deferred, load_relaxed(&slab->extensions))
    {
        extension->deferred(slab, object, what);
    }
}

/* `extensions` are those of the object's slab, which may be gone. */
void extensions_after_deferral(struct prudence_cache *cache, uint32_t extensions, bool alone)
{
    const struct slab_extension *extension;

    for_each_having(extension, after_deferral, extensions)
    {
        extension->after_deferral(cache, alone);
    }
}

void extensions_released(struct slab *slab, void *object)
{
    const struct slab_extension *extension;

    for_each_having(extension, released, load_relaxed(&slab->extensions))
    {
        extension->released(slab, object);
    }
}

void extensions_safe(struct slab *slab, void *object)
{
    const struct slab_extension *extension;
    bool released = true;

    for_each_having(extension, safe, load_relaxed(&slab->extensions))
    {
        if (!extension->safe(slab, object))
            released = false;
    }
    if (released)
        extensions_released(slab, object);
}

bool extensions_keep(struct slab *slab, void *object)
{
    const struct slab_extension *extension;

    for_each_having(extension, keeps, load_relaxed(&slab->extensions))
    {
        if (extension->keeps(slab, object))
            return true;
    }
    return false;
}

bool extensions_own(struct slab *slab, const void *object)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->owns && extension->owns(slab, object))
            return true;
    }
    return false;
}

size_t extensions_size_asked(const struct slab *slab, const void *object)
{
    const struct slab_extension *extension;
    size_t size = 0;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->size_asked && !size)
            size = extension->size_asked(slab, object);
    }
    return size;
}

void extensions_check_live(const struct slab *slab, const void *object, const char *what)
{
    const struct slab_extension *extension;

    for_each_extension(extension, load_relaxed(&slab->extensions))
    {
        if (extension->check_live)
            extension->check_live(slab, object, what);
    }
}

void extensions_explain(const struct slab *slab, const void *pointer)
{
    const struct slab_extension *extension;

    for_each_extension(extension, ALL_EXTENSIONS)
    {
        if (extension->explain)
            extension->explain(slab, pointer);
    }
}

void extensions_pressure(void)
{
    const struct slab_extension *extension;

    for_each_extension(extension, ALL_EXTENSIONS)
    {
        if (extension->pressure)
            extension->pressure();
    }
}
