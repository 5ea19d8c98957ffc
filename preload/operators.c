/* SPDX-License-Identifier: MIT */
/*
 * The C++ operators new and delete, plain and aligned. The runtime's other forms (array new,
 * nothrow, aligned array) call these, so a program that replaces one of the four still gets all.
 *
 * Array and sized delete are ours as well. Sized delete can check the size for the cost of the
 * runtime's detour. A program's own plain delete must still get every deletion, so ours call the
 * plain form, or first check that the program has not replaced it.
 *
 * When memory runs out, the runtime's own operator takes over. It asks malloc again, calls the
 * new-handler as long as there is one, and throws std::bad_alloc. The operator is looked up at that
 * moment, so this library needs no C++ library and serves one that is loaded late. Compiled with
 * -fexceptions, because exceptions pass through these functions.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>

#include <prudence/prudence.h>

#include "base/checked.h"
#include "heap/malloc.h"

#define OPERATOR_NEW            "_Znwm"
#define OPERATOR_NEW_ALIGNED    "_ZnwmSt11align_val_t"
#define OPERATOR_DELETE         "_ZdlPv"
#define OPERATOR_DELETE_ALIGNED "_ZdlPvSt11align_val_t"

PRUDENCE_API void *operator_new(size_t size) __asm__(OPERATOR_NEW);
PRUDENCE_API void *operator_new_aligned(size_t size,
                                        size_t alignment) __asm__(OPERATOR_NEW_ALIGNED);
PRUDENCE_API void operator_delete(void *object) __asm__(OPERATOR_DELETE);
PRUDENCE_API void operator_delete_array(void *object) __asm__("_ZdaPv");
PRUDENCE_API void operator_delete_sized(void *object, size_t size) __asm__("_ZdlPvm");
PRUDENCE_API void operator_delete_array_sized(void *object, size_t size) __asm__("_ZdaPvm");
PRUDENCE_API void operator_delete_aligned(void *object,
                                          size_t alignment) __asm__(OPERATOR_DELETE_ALIGNED);

/* A result of dlsym, by type. */
union found {
    void *address;
    void *(*new)(size_t size);
    void *(*new_aligned)(size_t size, size_t alignment);
};

/* Returns the runtime's function of this name: the next in symbol look-up, or one of a runtime
 * that dlopen loaded with local symbols. */
static union found of_runtime(const char *name, size_t size)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    union found found = {.address = dlsym(RTLD_NEXT, name)};

    for (unsigned i = 0; !found.address && i < sizeof runtimes / sizeof runtimes[0]; i++) {
        void *runtime = dlopen(runtimes[i], RTLD_LAZY | RTLD_NOLOAD);

        found.address = runtime ? dlsym(runtime, name) : NULL;
    }
    if (!found.address)
        os_panic("operator new: no memory for %zu bytes, and no C++ runtime to throw bad_alloc",
                 size);
    return found;
}

static __attribute__((noinline)) void *new_slow(size_t size)
{
    void *object = malloc_slow(size);

    return likely(object) ? object : of_runtime(OPERATOR_NEW, size).new(size);
}

FAST_ENTRY static __attribute__((noinline)) void *new_counted(size_t size, size_t place)
{
    void *object = counted_pop(&size_tables.counted[place], size);

    return likely(object) ? object : new_slow(size);
}

FAST_ENTRY void *operator_new(size_t size)
{
    size_t place = size_place(size);
    struct prudence_cache *cache = size_class_open(place);
    void *object;

    if (unlikely(!cache))
        return new_counted(size, place);
    object = os_percpu_pop(&cache->fast_percpu);
    return likely(object) ? object : new_slow(size);
}

/* The aligned operator of libstdc++ rounds the size up to the alignment, and would return a
 * small object for a size that wraps. Such a size never succeeds, so the plain operator may
 * refuse it as well. */
static __attribute__((noinline)) void *new_aligned_slow(size_t size, size_t alignment)
{
    size_t rounded;

    if (!checked_round_up(size, alignment, &rounded))
        return of_runtime(OPERATOR_NEW, size).new(size);
    return of_runtime(OPERATOR_NEW_ALIGNED, size).new_aligned(size, alignment);
}

void *operator_new_aligned(size_t size, size_t alignment)
{
    void *object = prudence_aligned_alloc(alignment, size);

    return likely(object) ? object : new_aligned_slow(size, alignment);
}

FAST_ENTRY void operator_delete(void *object)
{
    object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "operator delete");
}

/* The plain forms that the process uses, perhaps the program's own, and ours. */
static void (*const volatile plain)(void *object) = operator_delete;
static void (*const volatile plain_array)(void *object) = operator_delete_array;
extern HIDDEN void our_plain(void *object) __attribute__((alias(OPERATOR_DELETE)));
extern HIDDEN void our_plain_array(void *object) __attribute__((alias("_ZdaPv")));

void operator_delete_array(void *object)
{
    plain(object);
}

/* Handles objects that are not ours, NULL, and sizes of no class or of another one. */
static __attribute__((noinline)) void delete_sized_slow(void *object, size_t size)
{
    struct slab *slab = object ? slab_of(object) : NULL;

    if (!slab && object && !nested_has(object))
        slab = object_slab(object, "sized operator delete");

    if (slab)
        malloc_require_size(slab, object, size, "sized operator delete");
    object_free(slab, OBJECT_ANY_CACHE, false, object, "operator delete");
}

FAST_ENTRY void operator_delete_sized(void *object, size_t size)
{
    struct slab *slab = slab_of(object);

    if (unlikely(plain != our_plain))
        plain(object);
    else if (unlikely(!slab) || unlikely(slab->cache != size_class_ready(size)))
        delete_sized_slow(object, size);
    else
        object_free(slab, OBJECT_ANY_CACHE, false, object, "operator delete");
}

void operator_delete_array_sized(void *object, size_t size)
{
    if (likely(plain_array == our_plain_array))
        operator_delete_sized(object, size);
    else
        plain_array(object);
}

bool malloc_deletes(void)
{
    return plain == our_plain;
}

void operator_delete_aligned(void *object, size_t alignment)
{
    (void)alignment;
    object_free(slab_of(object), OBJECT_ANY_CACHE, false, object, "operator delete");
}
