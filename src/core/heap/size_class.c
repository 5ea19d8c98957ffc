/* SPDX-License-Identifier: MIT */
/*
 * Size classes are 16 bytes apart up to 128, then eight per doubling up to 128 KiB, so that at most
 * 12.5 % of an object above 128 bytes is waste. Each class is a slab cache, made when first needed.
 *
 * An object with an alignment is in the class of its size if all objects there are so aligned.
 * Otherwise it is in an aligned class. The size is rounded up to the alignment and then to a class,
 * and the objects of that class are aligned to the largest power of two that divides their size, up
 * to a page. So the object takes at most an eighth more than the size rounded up to the alignment
 * (ADR 10).
 *
 * With red zones, an object takes the class of object and zone together. Then no class is `ready`,
 * so every allocation reaches size_class_cache(). There are as many classes, of the same sizes, as
 * without.
 */
#include "heap/size_class.h"

#include "heap/counted.h"
#include "slab/cache.h"

_Static_assert(LINEAR_MAX << DOUBLINGS == OBJECT_SIZE_MAX, "the last class is the largest object");

struct prudence_cache *size_classes[CLASSES];
struct prudence_cache *ready_classes[SIZE_PLACES];
struct size_tables size_tables;
static struct prudence_cache *aligned_classes[CLASSES];
static struct prudence_cache *zoned_classes[CLASSES]; /* with red zones */
static struct prudence_cache *empty_class;
struct os_lock heap_lock = OS_LOCK_INIT(OS_RANK_HEAP);

size_t size_class_bytes(unsigned class)
{
    unsigned doubling = (class - LINEAR_CLASSES) / CLASSES_PER_DOUBLING;
    unsigned step = (class - LINEAR_CLASSES) % CLASSES_PER_DOUBLING + 1;

    if (class < LINEAR_CLASSES)
        return (size_t)(class + 1) * LINEAR_STEP;
    return ((size_t)LINEAR_MAX << doubling) + ((size_t)step << (doubling + 4));
}

size_t size_class_spare READ_MOSTLY = 0;
bool size_class_of_empty READ_MOSTLY = false;

/* Avoids snprintf, because that would make tables of 200 KB resident in a program that prints
 * nothing. */
void size_class_name(char *name, const char *kind, size_t size)
{
    char digits[20];
    unsigned length = 0;

    while (*kind)
        *name++ = *kind++;
    *name++ = '-';
    do
        digits[length++] = (char)('0' + size % 10);
    while (size /= 10);
    while (length)
        *name++ = digits[--length];
    *name = '\0';
}

/* Makes the cache unless another thread has. A `size` of 0 makes the class of empty objects.
 * Aligned classes are dense, because a power of two of pages would leave up to an eighth over. The
 * others are roomy: a program has few of them, and they hold most of its objects. */
static struct prudence_cache *size_class_make(struct prudence_cache **place, const char *kind,
                                              size_t size, size_t alignment)
{
    struct cache_layout layout = {.object_size = size ? size - size_class_spare : 0,
                                  .alignment = alignment,
                                  .flags = !size                     ? CACHE_CLOSED
                                           : alignment > LINEAR_STEP ? CACHE_DENSE
                                                                     : CACHE_ROOMY};
    char name[CACHE_NAME_SIZE];

    process_start();
    size_class_name(name, kind, size);
    os_lock_take(&heap_lock);
    if (!*place)
        store_release(place, cache_create(name, &layout));
    os_lock_release(&heap_lock);
    return *place;
}

/* Runs also without a profile, because a profile may still be requested until the first cache is
 * made. */
COLD void size_classes_start(void)
{
    for (size_t place = 0; place < SIZE_PLACES; place++)
        size_tables.counted[place] = os_percpu_owned_lines;
}

/* Publishes a class to the allocations of one place. An empty object is never just counted, because
 * there are no bytes to sample. */
static void size_class_publish(size_t place, struct prudence_cache *cache)
{
    store_release(&ready_classes[place], cache);
    if (load_relaxed(&cache->fast_percpu) != os_percpu_owned_lines)
        store_release(&size_tables.open[place], cache);
    else if (load_relaxed(&sampling_rate) && place)
        store_release(&size_tables.counted[place], load_relaxed(&cache->body->slab_percpu));
}

/* A class that another thread publishes now may stay open, so allocations try its closed path
 * without success. */
void size_classes_begin_counting(void)
{
    for (size_t place = 1; place < SIZE_PLACES; place++) {
        const struct prudence_cache *cache = load_acquire(&ready_classes[place]);

        if (!cache)
            continue;
        store_release(&size_tables.counted[place], load_relaxed(&cache->body->slab_percpu));
        store_release(&size_tables.open[place], (struct prudence_cache *)NULL);
    }
}

/* Return the first and last place of a class. Steps end where classes end. */
static size_t first_place(unsigned class)
{
    return class ? size_place(size_class_bytes(class - 1) + 1) : size_class_of_empty;
}

static size_t last_place(unsigned class)
{
    return size_place(size_class_bytes(class));
}

static struct prudence_cache *make_class(unsigned class)
{
    struct prudence_cache *cache;

    if (size_class_spare)
        return size_class_make(&zoned_classes[class], "size", size_class_bytes(class), LINEAR_STEP);
    cache = size_class_make(&size_classes[class], "size", size_class_bytes(class), LINEAR_STEP);
    for (size_t place = first_place(class); cache && place <= last_place(class); place++)
        size_class_publish(place, cache);
    return cache;
}

static struct prudence_cache *make_empty_class(void)
{
    struct prudence_cache *cache = size_class_make(&empty_class, "size", 0, LINEAR_STEP);

    if (cache && !size_class_spare)
        size_class_publish(0, cache);
    return cache;
}

/* Returns the class of a size, ignoring alignment. */
static struct prudence_cache *plain_cache(size_t size)
{
    unsigned class = size_class_of(size);
    struct prudence_cache *cache =
        load_acquire(size_class_spare ? &zoned_classes[class] : &size_classes[class]);

    return cache ? cache : make_class(class);
}

/*
 * Returns whether the objects of a size's own class are aligned. Slabs begin with a color, a
 * multiple of a cache line, and the line that spreads some strides (ADR 3) is one too; a red zone
 * may be none. Classes of other sizes are not used, because the size passed to a free must select
 * the object's class (malloc_require_size).
 */
static bool plain_is_aligned(size_t size, size_t alignment)
{
    return alignment <= CACHE_LINE && !size_class_spare &&
           size_class_bytes(size_class_of(size)) % alignment == 0;
}

static struct prudence_cache *aligned_cache(size_t size, size_t alignment)
{
    unsigned class = size_class_of(round_up(size, alignment));
    struct prudence_cache *cache = load_acquire(&aligned_classes[class]);
    size_t bytes = size_class_bytes(class);

    return cache ? cache
                 : size_class_make(&aligned_classes[class], "aligned", bytes,
                                   min_size(bytes & -bytes, OS_PAGE_SIZE));
}

/* Returns the class for a size and an alignment. Avoids a plain class with extensions, because
 * these may put an object elsewhere, aligned as the class is and no better (guard/guard.c). */
static struct prudence_cache *cache_with_alignment(size_t size, size_t alignment)
{
    struct prudence_cache *plain = NULL;

    if (plain_is_aligned(size, alignment)) {
        plain = plain_cache(size);
        if (!plain || !cache_extensions(plain))
            return plain;
    }
    return aligned_cache(size, alignment);
}

struct prudence_cache *size_class_cache(size_t size, size_t alignment, bool *failed)
{
    struct prudence_cache *cache;

    if (unlikely(size > MEDIUM_MAX))
        process_start(); /* sets slab_margin */
    if (size > size_class_most() - size_class_spare || alignment > OS_PAGE_SIZE)
        return NULL;
    if (alignment > LINEAR_STEP) {
        cache = cache_with_alignment(max_size(size, 1) + size_class_spare, alignment);
    } else if (!size && size_class_of_empty) {
        cache = load_acquire(&empty_class);
        if (!cache)
            cache = make_empty_class();
    } else {
        cache = plain_cache(max_size(size, 1) + size_class_spare);
    }
    *failed = !cache;
    return cache;
}
