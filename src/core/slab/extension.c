/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Calls the functions of all extensions of a slab or cache: one function for each row of
 * extension_steps.h. */
#include "slab/extension.h"

#include "os/os.h"
#include "slab/all_caches.h"
#include "slab/cache_type.h"
#include "slab/slab.h"

struct first_blocks slab_first READ_MOSTLY = {.extension = 0};

/* For each step, the extensions that have a function for it. Written at start, before any cache
 * exists. */
static struct {
#define STEP(name) uint32_t name;
#include "slab/extension_steps.h"
} having;

COLD void extensions_start(void)
{
    for (unsigned i = 0; i < OS_EXTENSIONS; i++) {
        const struct slab_extension *extension = slab_extensions[i];

        if (!extension)
            continue;
#define STEP(name) having.name |= extension->name ? EXTENSION_BIT(i) : 0;
#include "slab/extension_steps.h"
    }
}

bool extensions_meet_objects(uint32_t extensions)
{
    return extensions & (having.instead | having.allocated | having.freed | having.deferred |
                         having.safe | having.released);
}

bool extensions_meet_aside(uint32_t extensions)
{
    return extensions & (having.instead | having.allocated | having.deferred);
}

uint32_t extensions_wanted(const struct cache_layout *layout, uint32_t *of_slabs)
{
    uint32_t wanted = *of_slabs = 0;

    for (uint32_t left = having.wants; left; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctz(left);
        enum extension_wish wish = slab_extensions[number]->wants(layout);

        if (wish != EXTENSION_UNWANTED)
            wanted |= EXTENSION_BIT(number);
        if (wish == EXTENSION_WANTED)
            *of_slabs |= EXTENSION_BIT(number);
    }
    return wanted;
}

/* ------------------------------------------------------------------------------------ the steps */

#define OF_CACHE load_relaxed(&cache->extensions)
#define OF_SLAB  load_relaxed(&slab->extensions)
#define OF_ALL   (EXTENSION_BIT(OS_EXTENSIONS) - 1)

/* Types and lists of parameters take no parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* Visits extensions of a set that have a function for the step. */
#define for_each_having(extension, step, set)                                                      \
    for (uint32_t left_ = (set)&having.step;                                                       \
         left_ && ((extension) = slab_extensions[__builtin_ctz(left_)], true); left_ &= left_ - 1)

#define EACH(step, set, parameters, arguments)                                                     \
    void extensions_##step parameters                                                              \
    {                                                                                              \
        const struct slab_extension *extension;                                                    \
                                                                                                   \
        for_each_having(extension, step, set)                                                      \
        {                                                                                          \
            extension->step arguments;                                                             \
        }                                                                                          \
    }

#define EVERY(step, set, parameters, arguments)                                                    \
    bool extensions_##step parameters                                                              \
    {                                                                                              \
        const struct slab_extension *extension;                                                    \
        bool all = true;                                                                           \
                                                                                                   \
        for_each_having(extension, step, set)                                                      \
        {                                                                                          \
            all &= extension->step arguments;                                                      \
        }                                                                                          \
        return all;                                                                                \
    }

#define FIRST(type, step, set, parameters, arguments)                                              \
    type extensions_##step parameters                                                              \
    {                                                                                              \
        const struct slab_extension *extension;                                                    \
        type found = 0;                                                                            \
                                                                                                   \
        for_each_having(extension, step, set)                                                      \
        {                                                                                          \
            found = extension->step arguments;                                                     \
            if (found)                                                                             \
                break;                                                                             \
        }                                                                                          \
        return found;                                                                              \
    }

#define ANY(step, set, parameters, arguments) FIRST(bool, step, set, parameters, arguments)

/* While the functions are called, the owner has the extensions that were called. */
#define MADE(step, undo, type, owner)                                                              \
    bool extensions_##step(type *owner)                                                            \
    {                                                                                              \
        uint32_t wanted = (owner)->extensions;                                                     \
                                                                                                   \
        for ((owner)->extensions = 0; wanted; wanted &= wanted - 1) {                              \
            unsigned number = (unsigned)__builtin_ctz(wanted);                                     \
                                                                                                   \
            if (slab_extensions[number]->step && !slab_extensions[number]->step(owner)) {          \
                extensions_##undo(owner);                                                          \
                return false;                                                                      \
            }                                                                                      \
            (owner)->extensions |= EXTENSION_BIT(number);                                          \
        }                                                                                          \
        return true;                                                                               \
    }

#define THROUGH(type, step, parameters)
#include "slab/extension_steps.h"

/* NOLINTEND(bugprone-macro-parentheses) */

/* -------------------------------------------------------------------------- one more extension */

/* Closes a path. Called first, so that a thread which sees the extension sees closed paths. */
static void close_path(void **fast_percpu)
{
    if (load_relaxed(fast_percpu) != os_percpu_owned_lines)
        store_relaxed(fast_percpu, os_percpu_owned_lines);
}

void extensions_add(struct slab *slab, unsigned number)
{
    close_path(&slab->fast_percpu);
    if (slab->cache->named)
        close_path(&slab->cache->fast_percpu);
    __atomic_fetch_or(&slab->extensions, EXTENSION_BIT(number), __ATOMIC_RELEASE);
}

/* -------------------------------------------------------------- an extension that begins late */

/* The parts of a layout by which an extension that may begin late chooses caches. */
static struct cache_layout layout_of(const struct prudence_cache *cache)
{
    return (struct cache_layout){.flags = cache->flags,
                                 .constructor = cache->body->constructor,
                                 .destructor = cache->body->destructor,
                                 .no_cpu_caches = !cache->percpu};
}

/* The caller holds slab_caches_lock. */
static void begin_in_cache(struct prudence_cache *cache, unsigned number)
{
    const struct cache_layout layout = layout_of(cache);
    enum extension_wish wish = slab_extensions[number]->wants(&layout);

    if (wish == EXTENSION_UNWANTED)
        return;
    close_path(&cache->fast_percpu);
    close_path(&cache->body->aside_percpu);
    if (wish == EXTENSION_WANTED) {
        close_path(&cache->body->slab_percpu);
        /* Pairs with slab_init(). Only the lock's holder writes: RISC-V has no atomic or here. */
        store_release(&cache->slab_extensions,
                      narrow(uint16_t, cache->slab_extensions | EXTENSION_BIT(number)));
    }
    __atomic_fetch_or(&cache->extensions, EXTENSION_BIT(number), __ATOMIC_RELEASE);
}

void extensions_begin(unsigned number)
{
    struct list *item;

    os_lock_take(&slab_caches_lock);
    list_for_each(item, &slab_caches)
    {
        begin_in_cache(list_entry(item, struct prudence_cache, link), number);
    }
    os_lock_release(&slab_caches_lock);
}
