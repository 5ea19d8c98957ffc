/* SPDX-License-Identifier: MIT */
/* Objects of any size: the functions of <prudence/prudence.h> that take no cache. */
#include <errno.h>
#include <string.h>

#include <prudence/prudence.h>
#include <prudence/rcu.h>

#include "base/checked.h"
#include "heap/harmless.h"
#include "heap/malloc.h"
#include "slab/misuse.h"
#include "vfork.h"

#define ZERO_BY_PARTS ((size_t)32 << 20) /* least bytes of a block that is not just cleared */

static void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Allocates an object that no existing size class serves, because the class is still to be made,
 * the alignment differs, or the block is large. `class_max` is the largest size to be in a
 * class. */
static void *allocate_anew(size_t size, size_t class_max, size_t alignment, bool *zeroed)
{
    bool failed = false;
    struct prudence_cache *cache =
        size <= class_max ? size_class_cache(size, alignment, &failed) : NULL;

    if (cache)
        return object_alloc(cache, max_size(size, 1), "prudence_malloc");
    return failed ? NULL : large_alloc(size, alignment, zeroed);
}

static __attribute__((noinline)) void *malloc_block(size_t size, size_t class_max, size_t alignment,
                                                    bool *zeroed)
{
    void *object = NULL;

    if (unlikely(object_call_is_nested()))
        object = nested_alloc(size, alignment, zeroed);
    if (likely(!object_call_is_nested()) || (!object && os_in_vfork_child)) {
        nested_depth++;
        object = allocate_anew(size, class_max, alignment, zeroed);
        nested_depth--;
    }
    return object ? object : out_of_memory();
}

/* A separate function, so that allocations that are only counted save no registers. */
__attribute__((noinline)) void *malloc_slow(size_t size)
{
    struct prudence_cache *cache = size_class_ready(size);
    void *object = cache ? object_pop_as_owner(cache) : NULL;
    bool zeroed;

    if (unlikely(object))
        return object;
    return cache && likely(!object_call_is_nested())
               ? object_alloc_by_gate(cache, size, "prudence_malloc")
               : malloc_block(size, OBJECT_SIZE_MAX, 1, &zeroed);
}

FAST_ENTRY __attribute__((noinline)) void *malloc_counted(size_t size, size_t place)
{
    void *object = counted_pop(&size_tables.counted[place], size);

    return likely(object) ? object : malloc_slow(size);
}

FAST_ENTRY void *prudence_malloc(size_t size)
{
    return malloc_fast(size);
}

void *malloc_counted_zeroed(size_t bytes, size_t place)
{
    void *object = counted_pop(&size_tables.counted[place], bytes);

    return likely(object) ? memset(object, 0, bytes) : prudence_calloc(1, bytes);
}

/* Most of a large block may never have been touched. Extensions want to see what is written. */
static void malloc_zero(void *object, size_t bytes)
{
    const struct slab *slab = bytes < ZERO_BY_PARTS ? NULL : slab_of(object);

    if (slab && !load_relaxed(&slab->extensions))
        os_pages_zero(object, bytes);
    else
        memset(object, 0, bytes);
}

void *prudence_calloc(size_t count, size_t size)
{
    bool zeroed = false;
    size_t bytes;
    void *object;

    if (!checked_multiply(count, size, &bytes))
        return out_of_memory();
    object = malloc_block(bytes, CALLOC_CLASS_MAX, 1, &zeroed);
    if (object && !zeroed)
        malloc_zero(object, bytes);
    return object;
}

void *prudence_aligned_alloc(size_t alignment, size_t size)
{
    bool zeroed;

    if (!is_power_of_two(alignment)) {
        errno = EINVAL;
        return NULL;
    }
    return malloc_block(size, OBJECT_SIZE_MAX, alignment, &zeroed);
}

size_t prudence_usable_size(const void *object)
{
    struct slab *slab;

    if (!object)
        return 0;
    if (unlikely(!slab_of(object)) && nested_has(object))
        return nested_usable(object, "prudence_usable_size");
    slab = object_slab(object, "prudence_usable_size");
    misuse_check_live(slab, object, "prudence_usable_size");
    object_require_unfreed(slab, object, "prudence_usable_size");
    return object_usable(slab, object);
}

static bool must_move(const struct slab *slab)
{
    return unlikely(load_relaxed(&slab->extensions)) && extensions_must_move(slab);
}

/* Set once an object could not be moved although a far smaller size was asked for, because there
 * was no memory. From then on any smaller size is possible, also where extensions note the size. */
static bool shrinking_has_failed;

#define CREEP_SHIFT 3 /* growth by up to an eighth */

/* Allocates the replacement of a small object that grows. One that grows by little, as a buffer
 * does to which bytes are appended, will do so again, and gets half more. Others, which grow by
 * factors, get no more than they ask for, nor do objects whose extensions know their size. */
static void *malloc_grown(size_t size, size_t usable, bool exact)
{
    size_t room = min_size(usable + usable / 2, size_class_most());
    int saved_errno = errno;
    void *object = NULL;

    if (!exact && size - usable <= usable >> CREEP_SHIFT && size < room &&
        !(object = prudence_malloc(room)))
        errno = saved_errno; /* the size itself may succeed */
    return likely(object) ? object : prudence_malloc(size);
}

/* Allocates the replacement of an object of `slab`. A block that has grown once will grow again. */
static void *malloc_moved(const struct slab *slab, size_t size, size_t usable, bool nested)
{
    size_t growing = large_growing(size);
    void *object = NULL;

    if (size <= usable || must_move(slab) || nested)
        return prudence_malloc(size);
    if (size <= size_class_most())
        return malloc_grown(size, usable, load_relaxed(&slab->extensions));
    if (is_large(slab) && growing > size)
        object = large_alloc_grown(size, growing);
    if (!object)
        object = large_alloc_grown(size, size);
    return object ? object : out_of_memory();
}

/* Returns whether a live object stays in place when resized. */
static bool keeps_its_place(struct slab *slab, void *object, size_t size)
{
    size_t room = slab_usable_bytes(slab);

    if (size > room || size < room / 2)
        return false;
    if (unlikely(load_relaxed(&slab->extensions)))
        extensions_resized(slab, object, size);
    return true;
}

/* Copies `bytes` of the object to its replacement and frees the object. A short-term object
 * (`owned`) stays with the expiration dates it has, which do not move. Returns the replacement. If
 * there is none, because there was no memory, changes nothing and returns NULL. */
static void *malloc_replace(void *object, void *replacement, size_t bytes, bool owned)
{
    if (!replacement)
        return NULL;
    memcpy(replacement, object, bytes);
    if (!owned)
        prudence_free(object);
    return replacement;
}

/* Like prudence_realloc(), for a block of the side area (heap/nested.c). */
static void *realloc_side_block(void *object, size_t size)
{
    size_t usable = nested_usable(object, "prudence_realloc");
    void *moved;

    if (size <= usable && size >= usable / 2)
        return object;
    moved = malloc_replace(object, prudence_malloc(size), min_size(size, usable), false);
    return moved || size > usable ? moved : object;
}

void *prudence_realloc(void *object, size_t size)
{
    struct slab *slab;
    size_t usable;
    bool owned = false, nested;
    void *moved;

    if (!object)
        return prudence_malloc(size);
    if (unlikely(!slab_of(object)) && nested_has(object))
        return realloc_side_block(object, size);
    nested = object_call_is_nested();
    slab = object_slab(object, "prudence_realloc");
    if (unlikely(load_relaxed(&slab->extensions)))
        owned = !misuse_check_live(slab, object, "prudence_realloc");
    object_require_unfreed(slab, object, "prudence_realloc");
    usable = object_usable(slab, object);
    if (must_move(slab) || nested) {
        ; /* below */
    } else if (is_large(slab) && !owned && !slab->cache->body->margin) {
        if (large_resize(slab, size))
            return slab->base;
    } else if (keeps_its_place(slab, object, size)) {
        return object;
    }
    moved = malloc_replace(object, malloc_moved(slab, size, usable, nested), min_size(size, usable),
                           owned);
    if (moved || size > usable)
        return moved;
    store_relaxed(&shrinking_has_failed, true);
    return object; /* shrinking need not fail */
}

FAST_ENTRY void prudence_free(void *object)
{
    object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "prudence_free");
}

/* Returns whether `size` can be the size the program asked for. With red zones that size is known.
 * Otherwise an object of a size class was allocated in that class, or has been reallocated in
 * place, down to half of the class's size. */
static bool size_is_possible(const struct slab *slab, const void *object, size_t size)
{
    size_t asked =
        unlikely(load_relaxed(&slab->extensions)) ? extensions_size_asked(slab, object) : 0;
    size_t usable = asked ? asked : slab_usable_bytes(slab);

    if (asked && size_class_spare && !slab->alone && !load_relaxed(&shrinking_has_failed))
        return max_size(size, 1) == asked;
    if (size >= usable / 2 || size_class_ready(usable) != slab->cache ||
        load_relaxed(&shrinking_has_failed))
        return size <= usable;
    return size_class_ready(max_size(size, 1)) == slab->cache;
}

static void __attribute__((noreturn))
report_size(struct slab *slab, const void *object, size_t size, const char *what)
{
    os_report_misuse("%s: %p of cache '%s' has %zu bytes, and the size %zu is wrong", what, object,
                     slab->cache->name, object_usable(slab, object), size);
    misuse_explain_and_abort(slab, object);
}

static bool has_pages_for(const struct slab *slab, size_t size)
{
    return size > size_class_most() && size <= slab_usable_bytes(slab) &&
           slab_usable_bytes(slab) - size < os_page_size;
}

/* Returns whether a live object may stay in place when resized. A large block does not grow. */
static bool may_stay(struct slab *slab, void *object, size_t size)
{
    if (must_move(slab) || object_call_is_nested())
        return false;
    if (is_large(slab) && !slab->cache->body->margin)
        return !load_relaxed(&slab->extensions) && has_pages_for(slab, size);
    return keeps_its_place(slab, object, size);
}

/* Like prudence_aligned_realloc(), for an object of a slab that prudence_realloc() might move to
 * another alignment. */
static void *realloc_aligned(struct slab *slab, void *object, size_t alignment, size_t size)
{
    static const char what[] = "prudence_aligned_realloc";
    bool aligned = !((uintptr_t)object & (alignment - 1)), owned = false;
    size_t usable;
    void *moved;

    if (unlikely(load_relaxed(&slab->extensions)))
        owned = !misuse_check_live(slab, object, what);
    object_require_unfreed(slab, object, what);
    usable = object_usable(slab, object);
    if (aligned && may_stay(slab, object, size))
        return object;
    moved = malloc_replace(object, prudence_aligned_alloc(alignment, size), min_size(size, usable),
                           owned);
    if (moved || !aligned || size > usable)
        return moved;
    store_relaxed(&shrinking_has_failed, true);
    return object; /* shrinking need not fail */
}

void *prudence_aligned_realloc(void *object, size_t alignment, size_t size)
{
    size_t usable;

    if (!object || !is_power_of_two(alignment))
        return prudence_aligned_alloc(alignment, size);
    if (alignment <= 16 && !((uintptr_t)object & (alignment - 1)))
        return prudence_realloc(object, size);
    if (likely(slab_of(object)) || !nested_has(object))
        return realloc_aligned(object_slab(object, "prudence_aligned_realloc"), object, alignment,
                               size);
    usable = nested_usable(object, "prudence_aligned_realloc");
    return malloc_replace(object, prudence_aligned_alloc(alignment, size), min_size(size, usable),
                          false);
}

/* Ends the process, or reports the first time and returns. */
static void refuse_size(struct slab *slab, const void *object, size_t size, const char *what)
{
    static uint32_t said;

    misuse_check_live(slab, object, what);
    if (!harmless_goes_on())
        report_size(slab, object, size, what);
    if (harmless_is_first(&said))
        os_report(
            "%s: %p of cache '%s' has %zu bytes, and the size %zu is wrong (for delete: perhaps a "
            "class without a virtual destructor). The object is freed by its own size, and further "
            "ones are, without a message; harmless_misuse=abort ends the process here",
            what, object, slab->cache->name, object_usable(slab, object), size);
}

void malloc_require_size(struct slab *slab, const void *object, size_t size, const char *what)
{
    size_t asked = extensions_size_asked(slab, object), room = slab_usable_bytes(slab);
    bool possible;

    misuse_check_live(slab, object, what);
    if (asked)
        possible = max_size(size, 1) == asked;
    else if (is_large(slab))
        possible = has_pages_for(slab, size);
    else if (size_class_ready(room) == slab->cache)
        possible = size_class_ready(max_size(size, 1)) == slab->cache;
    else
        possible = size <= room;
    if (!possible)
        refuse_size(slab, object, size, what);
}

FAST_ENTRY void prudence_free_sized(void *object, size_t size)
{
    struct slab *slab = slab_of(object);

    if (unlikely(slab && !size_is_possible(slab, object, size)))
        report_size(slab, object, size, "prudence_free_sized");
    object_free(slab, OBJECT_ANY_CACHE, false, object, "prudence_free_sized");
}

void malloc_free_sized(void *object, size_t size, const char *what)
{
    struct slab *slab = slab_of(object);

    if (unlikely(slab && !size_is_possible(slab, object, size)))
        refuse_size(slab, object, size, what);
    object_free(slab, OBJECT_ANY_CACHE, false, object, what);
}

void malloc_free_aligned_sized(void *object, size_t alignment, size_t size, const char *what)
{
    static uint32_t said;
    bool possible =
        !object || (is_power_of_two(alignment) && !((uintptr_t)object & (alignment - 1)));

    if (unlikely(!possible && !harmless_goes_on()))
        os_panic("%s: %p cannot have been allocated with alignment %zu", what, object, alignment);
    if (unlikely(!possible && harmless_is_first(&said)))
        os_report(
            "%s: %p cannot have been allocated with alignment %zu. It is freed nevertheless, and "
            "further ones are, without a message; harmless_misuse=abort ends the process here",
            what, object, alignment);
    malloc_free_sized(object, size, what);
}

size_t malloc_usable(const void *object)
{
    static uint32_t said;
    struct slab *slab = slab_of(object);
    bool live = slab ? !slab_may_be_dead(slab, slab_index(slab, object), ~0u) &&
                           !object_is_on_top(slab, object)
                     : !object || nested_has(object);

    if (likely(live) || !harmless_goes_on())
        return prudence_usable_size(object);
    if (harmless_is_first(&said))
        os_report(
            "malloc_usable_size: %p is no block that is allocated. The answer is 0, and for "
            "further ones too, without a message; harmless_misuse=abort ends the process here",
            object);
    return 0;
}

FAST_ENTRY void prudence_free_deferred(void *object)
{
    object_free_deferred(slab_of(object), OBJECT_ANY_CACHE, false, object,
                         "prudence_free_deferred");
}

bool prudence_domain_free_deferred(struct prudence_domain *domain, void *object)
{
    struct slab *slab = slab_of(object);

    if (unlikely(!slab) || unlikely(slab->cache->domain != domain))
        return !object;
    object_free_deferred(slab, OBJECT_ANY_CACHE, false, object, "prudence_domain_free_deferred");
    return true;
}

bool prudence_malloc_deletes(void)
{
    return malloc_deletes && malloc_deletes();
}
