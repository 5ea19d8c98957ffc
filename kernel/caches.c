// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Creates and destroys caches, including those of prudence_kmalloc(), and reports their
 * statistics. */

#include "classes.h"
#include "gp_kernel.h"
#include "module.h"
#include "os_kernel.h"
#include "slab/cache.h"
#include "slab/reclaim/drain.h"
#include "slab/reclaim/limit.h"
#include "slab/reclaim/wait.h"
#include "slab/stats.h"

#define OBJECT_CACHE_MIN   ((size_t)256 << 10)
#define OBJECT_CACHE_MAX   ((size_t)16 << 20)
#define OBJECT_CACHE_SHARE 64 /* 1/64 of memory */

struct prudence_cache *kmalloc_classes[CLASSES];
struct prudence_cache *kmalloc_blocks;

/* Adapts the kernel's constructors, which take one argument. */
static void construct(void *object, void *context)
{
    void (*constructor)(void *object) = context;

    constructor(object);
}

/*
 * Returns the number of bytes to which a CPU's object cache may grow. The bound has room for the
 * objects deferred during a grace period of milliseconds. If every CPU deferred as much, all CPUs'
 * object caches together would still take only a small share of memory.
 */
static size_t object_cache_bytes(void)
{
    return clamp_size(((size_t)totalram_pages() << PAGE_SHIFT) / OBJECT_CACHE_SHARE /
                          num_online_cpus(),
                      OBJECT_CACHE_MIN, OBJECT_CACHE_MAX);
}

/* Raises a small alignment, as SLUB does: a granule of KASAN must not belong to two objects. */
struct prudence_cache *prudence_cache_create(const char *name, size_t size, size_t align,
                                             unsigned int flags, void (*constructor)(void *object))
{
    struct cache_layout layout = {.object_size = size,
                                  .alignment = align ? max_size(align, ARCH_SLAB_MINALIGN) : 0,
                                  .flags = flags & PRUDENCE_TYPESAFE ? CACHE_TYPESAFE : 0,
                                  .object_cache_bytes = object_cache_bytes(),
                                  .constructor = constructor ? construct : NULL,
                                  .context = constructor};
    struct prudence_cache *cache;

    might_sleep();
    if (WARN(!name || !*name || !size || size > OBJECT_SIZE_MAX || flags & ~PRUDENCE_TYPESAFE ||
                 (align && (!is_power_of_two(align) || align > OS_PAGE_SIZE)),
             "prudence: no cache '%s' of %zu bytes aligned to %zu with flags %x\n",
             name ? name : "(no name)", size, align, flags))
        return NULL;
    cache = cache_create(name, &layout);
    if (cache)
        debugfs_add(cache);
    return cache;
}
EXPORT_SYMBOL_GPL(prudence_cache_create);

int prudence_cache_destroy(struct prudence_cache *cache)
{
    size_t live;

    if (!cache)
        return 0;
    might_sleep();
    debugfs_forget(cache);
    if (cache_destroy(cache, &live)) {
        cache_forget(cache);
        return 0;
    }
    debugfs_add(cache);
    return -EBUSY;
}
EXPORT_SYMBOL_GPL(prudence_cache_destroy);

size_t prudence_cache_shrink(struct prudence_cache *cache)
{
    might_sleep();
    return drain_fully(cache);
}
EXPORT_SYMBOL_GPL(prudence_cache_shrink);

struct prudence_cache *prudence_kmalloc_cache(size_t size)
{
    return size <= CLASS_SIZE_MAX ? kmalloc_class(size) : NULL;
}
EXPORT_SYMBOL_GPL(prudence_kmalloc_cache);

/* --------------------------------------------------------------------------------- size classes */

static struct prudence_cache *class_make(size_t size)
{
    size_t align = is_power_of_two(size) ? size : size & -size;
    char name[CACHE_NAME_SIZE];

    snprintf(name, sizeof name, "size-%zu", size);
    return prudence_cache_create(name, size, align, 0, NULL);
}

/* Returns the size class that serves `size`. */
static size_t class_size(size_t size)
{
    if (size > 64 && size <= 96)
        return 96;
    if (size > 128 && size <= 192)
        return 192;
    return max_size(round_up_to_power_of_two(size), CLASS_STEP);
}

int caches_start(void)
{
    static const struct cache_layout layout = {.object_size = OS_PAGE_SIZE, .no_cpu_caches = true};

    for (size_t step = 0; step < CLASSES; step++) {
        bool same = step && class_size(step * CLASS_STEP) == class_size((step - 1) * CLASS_STEP);

        kmalloc_classes[step] =
            same ? kmalloc_classes[step - 1] : class_make(class_size(step * CLASS_STEP));
        if (!kmalloc_classes[step])
            return -ENOMEM;
    }
    kmalloc_blocks = cache_create("large", &layout);
    if (!kmalloc_blocks)
        return -ENOMEM;
    debugfs_add(kmalloc_blocks);
    return 0;
}

static void class_unmake(struct prudence_cache *cache)
{
    if (cache && prudence_cache_destroy(cache))
        pr_err("prudence: cache '%s' still has live objects, whose memory is lost\n", cache->name);
}

void caches_stop(void)
{
    for (size_t step = 0; step < CLASSES; step++)
        if (step + 1 == CLASSES || kmalloc_classes[step + 1] != kmalloc_classes[step])
            class_unmake(kmalloc_classes[step]);
    class_unmake(kmalloc_blocks);
}

/* -------------------------------------------------------------------------------------- figures */

#define COPY_FIGURE(name)           stats->name = figures.name;
#define COPY_COUNTER(name, meaning) COPY_FIGURE(name)

void prudence_cache_stats(struct prudence_cache *cache, struct prudence_cache_stats *stats)
{
    struct cache_figures figures;

    stats_figures(cache, &figures);
    memset(stats, 0, sizeof *stats);
    memcpy(stats->name, cache->name, sizeof stats->name);
    ALL_FIGURES(COPY_COUNTER, COPY_FIGURE)
    if (stats->objects_live && cache->percpu)
        stats->fragmentation_permille = div64_u64(stats->slabs_now * stats->slab_size * 1000,
                                                  stats->objects_live * stats->object_size);
}
EXPORT_SYMBOL_GPL(prudence_cache_stats);

void prudence_stats(struct prudence_stats *stats)
{
    struct os_pages_stats pages;
    struct gp_kernel_stats gp;

    os_pages_stats(&pages);
    gp_kernel_stats(&gp);
    *stats = (struct prudence_stats){
        .page_bytes = pages.used,
        .page_bytes_peak = pages.used_peak,
        .metadata_bytes = pages.metadata,
        .latent_bytes = limit_used(),
        .limit_used_peak = limit_used_peak(),
        .latent_limit = load_relaxed(&slab_growth_limit),
        .cookies = gp.cookies,
        .requests = gp.requests,
        .expedited = gp.expedited,
        .waits = gp.waits,
        .expiries = gp.expiries,
        .hastened = gp.hastened,
        .throttle_waits = load_relaxed(&wait_counts.waits),
        .interrupts = load_relaxed(&os_percpu_interrupts),
    };
}
EXPORT_SYMBOL_GPL(prudence_stats);

void prudence_inject_failures(bool (*fails)(void))
{
    WRITE_ONCE(os_memory_fails, fails);
}
EXPORT_SYMBOL_GPL(prudence_inject_failures);
